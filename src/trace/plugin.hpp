// Policies and staleness rules of one's own, loaded from files (core/plugin.hpp).
#pragma once

#include "core/constants.hpp"
#include "core/scenario.hpp"

#include <functional>
#include <string>

namespace rubato::trace {

/// The policy in the file. Throws ModuleError where the file is no plugin of this rubato, or has no policy. What it
/// returns throws std::invalid_argument for constants that the policy does not take.
PolicyMaker load_policy(const std::string& path, const Constants& constants);

/// The staleness rule in the file. Throws as load_policy, and std::invalid_argument for constants.
std::function<double(const RuleInfo&)> load_rule(const std::string& path, const Constants& constants);

}  // namespace rubato::trace
