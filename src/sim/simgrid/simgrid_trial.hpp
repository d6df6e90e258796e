// Trying a SimGrid XML file in a child process first, as SimGrid aborts where a file is wrong.
#pragma once

#include "core/scenario.hpp"

#include <string>
#include <vector>

namespace rubato::sim {

struct Trial {
    std::vector<std::string> warnings;  ///< one line each
    bool profiles = false;              ///< the platform changes with time: SimGrid keeps its events for good
};

/// Loads cluster.platform in a forked child and checks speeds, bandwidths and the routes between the server's host and
/// the others. Throws PlatformError: file, line where known, what was expected.
Trial try_platform(const ClusterSpec& cluster);

}  // namespace rubato::sim
