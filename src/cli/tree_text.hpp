// A tree of servers, for people.
#pragma once

#include "core/scenario.hpp"
#include "sim/network.hpp"
#include "sim/placement.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// "star: 1 server, 4 workers", or a tree with its relays.
std::string topology_text(const Scenario& scenario);

/// Where the relays are, for whom, and what they pass on; those that are alike share a line.
std::vector<std::string> relay_lines(const Scenario& scenario, const sim::Placement& placement,
                                     const std::vector<sim::HostInfo>& hosts);

/// Gradient messages that relays send, for so many pushes of workers.
double relayed_messages(const Scenario& scenario, double pushes);

/// Whether relays add gradients up before the root sees them.
bool relays_sum(const Scenario& scenario);

}  // namespace rubato::cli
