// Protocols without a server: their keys, and what they go together with.
#pragma once

#include "cli/load.hpp"
#include "cli/node.hpp"
#include "core/scenario.hpp"

namespace rubato::cli {

/// Refuses what has no meaning or is not yet built. Nothing for others.
void complete_collective(const Node& root);

/// Refuses gradients of fewer elements than there are workers, where an allreduce is to carry proposals. parameters: of
/// the model; 0 where there is none.
void check_collective(const Node& root, const Scenario& scenario, std::int64_t parameters);

/// Refuses sums of the MPI library for a backend that has none.
void require_sums(const Loaded& loaded, const std::string& backend);

}  // namespace rubato::cli
