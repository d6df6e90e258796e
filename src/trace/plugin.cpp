#include "trace/plugin.hpp"

#include "core/plugin.hpp"
#include "trace/load_module.hpp"

namespace rubato::trace {
namespace {

/// What a plugin's function of this name gives.
template <class Plugin>
const Plugin& plugin_in(const std::string& path, const char* function, const char* macro) {
    void* entry = load_file(path, function);
    if (entry == nullptr) throw ModuleError(path + " has no " + macro);
    const Plugin& plugin = *reinterpret_cast<const Plugin* (*)()>(entry)();
    if (plugin.version != plugin_version)
        throw ModuleError(path + " was compiled for another version of rubato: compile it again");
    return plugin;
}

}  // namespace

PolicyMaker load_policy(const std::string& path, const Constants& constants) {
    const auto& plugin = plugin_in<PolicyPlugin>(path, "rubato_policy", "RUBATO_POLICY");
    return [&plugin, constants](int lambda) {
        Constants asked = constants;
        auto policy = plugin.make(lambda, asked);
        asked.require_all_known();
        return policy;
    };
}

std::function<double(const RuleInfo&)> load_rule(const std::string& path, const Constants& constants) {
    const auto& plugin = plugin_in<RulePlugin>(path, "rubato_rule", "RUBATO_RULE");
    auto rule = plugin.make(constants);
    constants.require_all_known();
    return rule;
}

}  // namespace rubato::trace
