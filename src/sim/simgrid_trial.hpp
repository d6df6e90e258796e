// Trying a SimGrid XML file in a child process first, as SimGrid aborts where a file is wrong.
#pragma once

#include "core/scenario.hpp"

#include <functional>
#include <string>
#include <vector>

namespace simgrid::s4u {
class Engine;
}

namespace rubato::sim {

/// Loads cluster.platform in a forked child, with an engine that `fresh_engine` makes there, and checks speeds,
/// bandwidths and the routes between the server's host and the others. Returns the warnings, one line each.
/// Throws PlatformError: file, line where known, what was expected.
std::vector<std::string> try_platform(const ClusterSpec& cluster,
                                      const std::function<simgrid::s4u::Engine&()>& fresh_engine);

}  // namespace rubato::sim
