// What sharded servers go together with.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

namespace rubato::cli {

/// Refuses what has no meaning with several servers, or is not yet built there. Of a scenario that is not yet one.
void complete_shards(const Node& root);

ShardsSpec build_shards(const Node& topology);

/// The same for what only the whole scenario tells.
void check_shards(const Node& root, const Scenario& scenario);

/// Whether there are layers where the servers are to be split by them.
void check_layers(const Node& root, const Scenario& scenario);

}  // namespace rubato::cli
