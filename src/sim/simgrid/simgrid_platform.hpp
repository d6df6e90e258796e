// Building what SimGrid simulates: settings of the model, stars, XML files. Uses SimGrid's s4u interface only.
#pragma once

#include "core/scenario.hpp"
#include "sim/network.hpp"

#include <simgrid/s4u.hpp>

#include <string>
#include <vector>

namespace rubato::sim {

/// Factors by which the model changes what the platform says; a message of b bytes alone on a route takes
/// latency * route latency + traffic * b / (bandwidth * route bandwidth).
struct ModelFactors {
    double latency = 1;
    double bandwidth = 1;
    bool crosstraffic = false;  ///< a flow also takes 5 % of its rate from the way back
    double weight_s = 0;        ///< SimGrid's network/weight-S: bytes that a link adds to the weight of a flow
};

/// Throws PlatformError for an unknown model.
ModelFactors factors_of(const NetworkSpec& spec);

/// Applies the settings to the process's engine. Must come before the platform is built.
void configure(const NetworkSpec& spec);

/// Loads a SimGrid XML file, which try_platform has accepted; hosts come in the order of the file.
std::vector<simgrid::s4u::Host*> load_xml(const simgrid::s4u::Engine& engine, const std::string& path);

/// What stands on the process's engine.
struct BuiltPlatform {
    std::vector<simgrid::s4u::Host*> hosts;  ///< in the order of the file or of the star; one may stand for many
    std::vector<HostInfo> infos;             ///< of each
    std::vector<std::string> warnings;
    bool profiles = false;   ///< availability of hosts or links changes with time
    bool loopbacks = false;  ///< hosts may have one; what is built from values has none
    bool used = false;       ///< something has run on it
};

/// Builds the platform of the request on a fresh engine, or takes the one that stands if it is the same and unused: who
/// only asks for hosts and routes before a run does not pay twice. Throws PlatformError, also after a platform with
/// profiles, whose events SimGrid keeps for good.
BuiltPlatform& open_platform(const NetworkRequest& request);

/// Narrowest bandwidth (bytes/s; infinite without a link) and latency (s) of a route.
struct Route {
    double bandwidth = 0;
    double latency = 0;
};

/// Throws PlatformError where there is none. Within a host it is the platform's loopback, or a route without link.
Route find_route(const simgrid::s4u::Host& from, const simgrid::s4u::Host& to);

/// Narrowest bandwidth of the links that all routes to `to` share, bytes/s; infinite where there is none. Links that
/// many flows may use at once (FATPIPE) do not count. Throws PlatformError where a route is missing.
double find_common_bandwidth(const std::vector<simgrid::s4u::Host*>& from, const simgrid::s4u::Host& to);

}  // namespace rubato::sim
