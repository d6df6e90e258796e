// Protocols that average models: their keys, and what they go together with.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

namespace rubato::cli {

/// Of the scenario's protocol.
Family family_of(const Node& root);

/// Fills in what depends on other keys, and refuses what has no meaning or is not yet built. Nothing for others.
void complete_averaging(Node& root);

/// Refuses parts of models that would be empty. parameters: of the model; 0 where there is none.
void check_phases(const Node& root, const Scenario& scenario, std::int64_t parameters);

}  // namespace rubato::cli
