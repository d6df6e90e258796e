#include "cli/sweep/overridden.hpp"

#include "cli/json_reader.hpp"
#include "cli/sweep/condition.hpp"

#include <fmt/format.h>

namespace rubato::cli {
namespace {

/// Whether a later layer's `key` changes what "--set" gave `set`, whose value is `value`.
bool overrides(const std::string& key, const std::string& set, const std::string& value) {
    if (key == set || set.starts_with(key + ".")) return true;
    if (!key.starts_with(set + ".")) return false;
    // A part of an object: it counts where the object has that part.
    const auto object = try_parse_json(value, {});
    return object && value_at(*object, std::string_view(key).substr(set.size() + 1));
}

/// "the axis "workers.count"", "the variant "a"", "all variants", ""seeds""; empty: nothing does.
std::string overriders(const SweepFile& sweep, const std::string& set, const std::string& value) {
    if (set == "seed" && sweep.tree.find("seeds")) return "\"seeds\"";
    for (const Axis& axis : sweep.axes)
        if (overrides(axis.key, set, value)) return "the axis \"" + axis.key + "\"";
    for (const Axis& axis : sweep.tuning ? sweep.tuning->axes : std::vector<Axis>{})
        if (overrides(axis.key, set, value)) return "the tuned axis \"" + axis.key + "\"";
    std::size_t count = 0;
    std::string first;
    for (const Variant& variant : sweep.variants) {
        for (const Assignment& one : variant.sets) {
            if (!overrides(one.key, set, value)) continue;
            if (count++ == 0) first = "\"" + variant.label + "\"";
            break;
        }
    }
    if (count == 0) return {};
    if (count == 1) return "the variant " + first;
    return count == sweep.variants.size() ? "all variants" : fmt::format("{} of the variants, {} first", count, first);
}

}  // namespace

std::vector<std::string> overridden_sets(const SweepFile& sweep, const std::vector<std::string>& sets) {
    std::vector<std::string> lines;
    for (const auto& assignment : sets) {
        const auto equals = assignment.find('=');
        const std::string key = assignment.substr(0, equals);
        const std::string who = overriders(sweep, key, assignment.substr(equals + 1));
        if (!who.empty()) lines.push_back("--set " + assignment + ": is overridden by " + who + " of the sweep");
    }
    return lines;
}

}  // namespace rubato::cli
