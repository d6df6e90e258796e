// What a tree of servers goes together with.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

namespace rubato::cli {

/// Refuses what has no meaning in a tree, or is not yet built there. Of a scenario that is not yet one.
void complete_tree(const Node& root);

/// The same for what only the whole scenario tells.
void check_tree(const Node& root, const Scenario& scenario);

}  // namespace rubato::cli
