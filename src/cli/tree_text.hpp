// A tree of servers, for people.
#pragma once

#include "core/scenario.hpp"
#include "core/shards.hpp"
#include "sim/network.hpp"
#include "sim/placement.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// "star: 1 server, 4 workers", or a tree with its relays.
std::string topology_text(const Scenario& scenario);

/// The shard that owns most.
int largest_shard(const Shards& shards);

/// Which part each shard has, and where; neighbours with parts alike share a line. parameters: of the model.
std::vector<std::string> shard_lines(const Scenario& scenario, std::int64_t parameters, const sim::Placement& placement,
                                     const std::vector<sim::HostInfo>& hosts);

/// Where the relays are, for whom, and what they pass on; those that are alike share a line.
std::vector<std::string> relay_lines(const Scenario& scenario, const sim::Placement& placement,
                                     const std::vector<sim::HostInfo>& hosts);

/// Who passes weights on to which workers, where they come down a tree of their own; empty elsewhere.
std::string feeds_text(const Scenario& scenario);

/// Gradient messages that relays send, for so many pushes of workers.
double relayed_messages(const Scenario& scenario, double pushes);

/// Whether relays add gradients up before the root sees them.
bool relays_sum(const Scenario& scenario);

}  // namespace rubato::cli
