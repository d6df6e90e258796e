// The flow network: SimGrid's sharing law (CM02) on stars and trees, without SimGrid and without anything global.
//
// A transfer waits for the latency of its route, and then shares the links of the route with the others, max-min, in
// proportion to 1 / latency. Many networks may live at once, in as many threads.
#pragma once

#include "sim/network.hpp"

#include <memory>

namespace rubato::sim {

/// The inline star, or a JSON platform that is a star, a tree, or a fat tree with one way between any two hosts. Throws
/// PlatformError for others, and for settings of SimGrid's that this model does not have.
std::unique_ptr<Network> open_flow_network(const NetworkRequest& request);

}  // namespace rubato::sim
