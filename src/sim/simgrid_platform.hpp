// Building what SimGrid simulates: settings of the model, stars, XML files. Uses SimGrid's s4u interface only.
#pragma once

#include "core/scenario.hpp"
#include "sim/star_platform.hpp"

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

/// Builds the star; hosts come in the order of the star.
std::vector<simgrid::s4u::Host*> build_star(const StarPlatform& star);

/// Loads a SimGrid XML file, which try_platform has accepted; hosts come in the order of the file.
std::vector<simgrid::s4u::Host*> load_xml(const simgrid::s4u::Engine& engine, const std::string& path);

/// Narrowest bandwidth (bytes/s; infinite without a link) and latency (s) of a route.
struct Route {
    double bandwidth = 0;
    double latency = 0;
};

/// Throws PlatformError where there is none. Within a host it is the platform's loopback, or a route without link.
Route find_route(const simgrid::s4u::Host& from, const simgrid::s4u::Host& to);

}  // namespace rubato::sim
