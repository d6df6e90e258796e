// `workers.pipeline`: with what overlapping workers go together.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

namespace rubato::cli {

/// Throws InputError, with the reason, where workers overlap and something else of the scenario leaves no meaning to
/// that. After the walk; scenario: what was built of the tree.
void check_pipeline(const Node& root, const Scenario& scenario);

}  // namespace rubato::cli
