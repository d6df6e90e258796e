// Policies and staleness rules of one's own, loaded from files (core/plugin.hpp).
#pragma once

#include "core/constants.hpp"
#include "core/scenario.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace rubato::trace {

/// What a plugin did that it must not: it threw, or ordered what cannot be done; what() is one line that names the
/// file.
struct PluginError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The policy in the file. Throws ModuleError where the file is no plugin of this rubato, or has no policy. What it
/// returns throws std::invalid_argument for constants that the policy does not take; it and its members
/// throw PluginError for all else that the plugin throws.
PolicyMaker load_policy(const std::string& path, const Constants& constants);

/// The staleness rule in the file. Throws as load_policy, and std::invalid_argument for constants.
std::function<double(const RuleInfo&)> load_rule(const std::string& path, const Constants& constants);

}  // namespace rubato::trace
