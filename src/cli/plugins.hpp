// Policies and staleness rules of one's own in scenarios: "name": "plugin", "file", "constants".
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

#include <memory>

namespace rubato::cli {

/// Notes the checksum of each file that is there. Throws InputError where a scenario was saved with another one, and
/// where the file is not named.
void complete_plugins(Node& root);

/// Throws InputError for a file that is not there.
void require_plugins(const Node& root);

/// The policy in `file`, of the section `protocol`, once made for lambda workers as a test; empty where the file is not
/// there. Throws InputError.
PolicyMaker policy_of(const Node& file, const Node& protocol, int lambda);

/// The same for a rule; it throws ExpressionError where it gives no usable factor.
std::shared_ptr<const Expression> rule_of(const Node& file, const Node& rule);

}  // namespace rubato::cli
