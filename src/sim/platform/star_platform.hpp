// A star as a value: what the inline star, JSON files and the network models have in common.
#pragma once

#include "core/scenario.hpp"

#include <string>
#include <vector>

namespace rubato::sim {

/// A host and its private full-duplex link to the center.
struct StarHost {
    std::string name;
    double speed = 1e9;  ///< flop/s of one core
    int cores = 1;
    double bandwidth = 1.25e9;  ///< bytes/s of each direction
    double latency = 1e-5;      ///< s
    bool operator==(const StarHost&) const = default;
};

struct StarPlatform {
    std::vector<StarHost> hosts;
};

/// The inline star of a scenario: the first hosts are the servers', the others are alike. Throws PlatformError.
StarPlatform inline_star(const StarSpec& spec, int hosts, int servers = 1);

}  // namespace rubato::sim
