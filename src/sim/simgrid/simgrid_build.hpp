// Platforms from values: SimGrid's own zones, so that the routing is SimGrid's. Uses SimGrid's s4u interface only.
#pragma once

#include "sim/platform/platform_json.hpp"

#include <simgrid/s4u.hpp>

#include <vector>

namespace rubato::sim {

/// Which private links of a star are simulated. A route's latency is that of both ends; where one link is left out, the
/// other bears both.
struct StarLinks {
    bool server = true, workers = true;
    bool operator==(const StarLinks&) const = default;
};

/// Builds the platform on the process's engine; hosts come in the order of the plan.
///
/// - star: a StarZone, a route of the two private links, as far as `links` keeps them;
/// - tree: a StarZone for each switch inside that of the switch above, and one for its hosts;
/// - full: a FullZone, a link of its own for each pair;
/// - fat-tree: a FatTreeZone, D-mod-K routing (Zahavi 2010);
/// - torus: a TorusZone, dimension after dimension, the shorter way round.
std::vector<simgrid::s4u::Host*> build(const JsonPlatform& plan, const StarLinks& links = {});

}  // namespace rubato::sim
