// The section `protocol`: defaults that depend on the number of workers, and combinations that have no meaning.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

namespace rubato::cli {

/// Throws InputError.
void complete_protocol(Node& root);

/// What does not go with what the policy says of itself, which one of the user's own says, too; scenario: what was
/// built of the tree. Throws InputError.
void check_policy(const Node& root, const Scenario& scenario);

}  // namespace rubato::cli
