#include "cli/sweep/point.hpp"

#include "cli/layers.hpp"
#include "cli/sweep/condition.hpp"
#include "cli/sweep/csv.hpp"
#include "trace/environment.hpp"

#include <charconv>
#include <cstdio>
#include <map>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

/// FNV-1a, 64 bits.
class Hash {
public:
    void add(std::string_view text) {
        for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 1099511628211ull;
        value_ = (value_ ^ 0xffu) * 1099511628211ull;  // no byte of UTF-8: where one text ends
    }
    void add(std::uint64_t number) {
        for (int i = 0; i < 8; ++i) value_ = (value_ ^ (number >> (8 * i) & 0xff)) * 1099511628211ull;
    }
    void add(const Node& node, bool top = false) {
        char text[40];
        const auto kind = node.is(Kind::integer) ? Kind::number : node.kind;
        add(static_cast<std::uint64_t>(kind));
        // An integer and the same number written with a fraction are one value.
        if (node.is(Kind::integer)) add({text, std::to_chars(text, text + sizeof text, node.integer).ptr});
        if (node.is(Kind::number)) add({text, std::to_chars(text, text + sizeof text, node.number).ptr});
        if (node.is(Kind::boolean)) add(static_cast<std::uint64_t>(node.boolean));
        if (node.is(Kind::string)) add(node.text);
        for (const Node& item : node.items) add(item);
        for (const auto& member : node.members) {
            if (member.key == "comment" || (top && (member.key == "seed" || member.key == "name"))) continue;
            add(member.key);
            add(member.value);
        }
        add(std::string_view("end"));
    }
    /// FNV alone leaves the high bits of near inputs near.
    std::uint64_t value() const {
        std::uint64_t mixed = value_ ^ (value_ >> 31);
        mixed *= 0xbf58476d1ce4e5b9ull;
        mixed ^= mixed >> 27;
        mixed *= 0x94d049bb133111ebull;
        return mixed ^ (mixed >> 31);
    }

private:
    std::uint64_t value_ = 14695981039346656037ull;
};

std::uint64_t platform_hash(const Node& tree) {
    Hash hash;
    for (const char* path : {"cluster.platform", "cluster.network", "workers.count", "workers.groups", "workers.hosts",
                             "workers.per_host"}) {
        if (const Node* node = value_at(tree, path)) hash.add(*node);
        hash.add(std::string_view(path));
    }
    return hash.value();
}

/// Names of profiles and layer tables that are swept over, and rates of the latter; the resolved scenario holds their
/// figures instead.
std::map<std::string, Node> file_names(const Node& tree, const std::vector<std::string>& swept) {
    std::map<std::string, Node> names;
    for (const auto& key : swept) {
        const bool profile =
            key == "cluster.profile" || (key.starts_with("cluster.devices.") && key.ends_with(".profile"));
        const Node* value = value_at(tree, key);
        const bool table =
            key == "cost.layers_rate" || (key == "cost.layers" && value && value->is(Node::Kind::string));
        if (value && (profile || table)) names[key] = *value;
    }
    return names;
}

}  // namespace

std::string_view name(Phase phase) {
    return phase == Phase::tune ? "tune" : "report";
}

std::uint32_t Resolver::combinations() const {
    std::uint64_t count = 1;
    for (const Dimension& dimension : sweep_.dimensions) {
        count *= dimension.size;
        if (count > 100'000'000)
            throw InputError(sweep_.tree.at("axes").where, "axes",
                             "expected at most 100,000,000 combinations of values, found more");
    }
    return static_cast<std::uint32_t>(count);
}

std::uint32_t Resolver::settings() const {
    const std::uint64_t count = std::uint64_t{combinations()} * sweep_.variants.size();
    if (count > 100'000'000)
        throw InputError(sweep_.tree.at("variants").where, "variants",
                         "expected at most 100,000,000 settings of all variants, found more");
    return static_cast<std::uint32_t>(count);
}

std::int32_t Resolver::choices() const {
    std::int64_t count = 1;
    for (const Axis& axis : sweep_.tuning ? sweep_.tuning->axes : std::vector<Axis>{}) {
        count *= static_cast<std::int64_t>(axis.values.size());
        if (count > 1'000'000)
            throw InputError(sweep_.tree.at("tune").at("axes").where, "tune.axes",
                             "expected at most 1,000,000 combinations of values, found more");
    }
    return static_cast<std::int32_t>(count);
}

std::vector<std::size_t> Resolver::tuned_values(std::int32_t choice) const {
    const auto& axes = sweep_.tuning->axes;
    std::vector<std::size_t> indices(axes.size());
    auto rest = static_cast<std::size_t>(choice);
    for (std::size_t i = axes.size(); i-- > 0;) {
        indices[i] = rest % axes[i].values.size();
        rest /= axes[i].values.size();
    }
    return indices;
}

/// The last dimension runs fastest, as one reads the file.
std::vector<std::pair<const Axis*, std::size_t>> Resolver::values_of(SettingId id) const {
    std::vector<std::pair<const Axis*, std::size_t>> values;
    std::size_t rest = id.setting % combinations();
    for (std::size_t i = sweep_.dimensions.size(); i-- > 0;) {
        const Dimension& dimension = sweep_.dimensions[i];
        for (const std::size_t axis : dimension.axes) values.emplace_back(&sweep_.axes[axis], rest % dimension.size);
        rest /= dimension.size;
    }
    if (!sweep_.tuning || id.choice < 0) return values;
    const auto indices = tuned_values(id.choice);
    for (std::size_t i = 0; i < indices.size(); ++i) values.emplace_back(&sweep_.tuning->axes[i], indices[i]);
    return values;
}

std::string Resolver::describe(SettingId id, const Node* resolved) const {
    std::string text = "variant \"" + sweep_.variants[variant_of(id.setting)].label + "\"";
    for (const auto& [axis, index] : values_of(id)) {
        if (!resolved || value_at(*resolved, axis->key))
            text += ", " + axis->key + " = " + cell_text(&axis->values[index]);
    }
    return text;
}

Setting Resolver::resolve(SettingId id) const {
    const Variant& variant = sweep_.variants[variant_of(id.setting)];
    Node tree = sweep_.base;
    for (const Assignment& set : variant.sets) set_value_at(tree, set.key, set.value, set.where);
    for (const auto& [axis, index] : values_of(id)) {
        Where where = axis->values[index].where;
        where.rank = axis->where.rank;
        set_value_at(tree, axis->key, axis->values[index], where);
    }
    std::vector<std::string> notes;
    settle_layers(tree, notes);
    const auto names = file_names(tree, sweep_.swept);
    Setting setting;
    setting.loaded = resolve_layers(std::move(tree), sweep_.base_name);
    complete_sizes(setting.loaded);
    setting.loaded.notes.insert(setting.loaded.notes.begin(), notes.begin(), notes.end());
    setting.label = variant.label;
    const Node& resolved = setting.loaded.tree;
    for (const auto& key : sweep_.swept) {
        const auto named = names.find(key);
        setting.cells.push_back(csv_cell(named == names.end() ? value_at(resolved, key) : &named->second));
    }
    Hash hash;
    hash.add(resolved, true);
    setting.content = hash.value();
    setting.platform = platform_hash(resolved);
    const ClusterSpec& cluster = setting.loaded.scenario.cluster;
    const bool by_schedule = !setting.loaded.scenario.schedule.trace.empty();
    setting.forks = cluster.network.model == "simgrid" && !by_schedule;
    setting.apart = setting.forks && cluster.platform.ends_with(".xml");
    return setting;
}

const Setting& Resolver::at(SettingId id) {
    if (id == last_id_) return last_;
    try {
        last_ = resolve(id);
    } catch (const InputError& error) {
        last_id_ = {~0u, -2};
        throw InputError(std::string(error.what()) + " (" + describe(id) + ")");
    }
    last_id_ = id;
    return last_;
}

std::vector<std::string> cells_without_choice(const SweepFile& sweep, std::vector<std::string> cells) {
    for (const Axis& axis : sweep.tuning ? sweep.tuning->axes : std::vector<Axis>{}) {
        for (std::size_t i = 0; i < sweep.swept.size(); ++i)
            if (sweep.swept[i] == axis.key) cells[i].clear();
    }
    return cells;
}

std::uint64_t identity_of(std::uint64_t content, const std::string& label, Phase phase, std::int64_t seed) {
    static const std::string version = trace::program_version();
    Hash hash;
    hash.add(content);
    hash.add(version);
    hash.add(label);
    hash.add(name(phase));
    hash.add(static_cast<std::uint64_t>(seed));
    return hash.value();
}

std::string identity_text(std::uint64_t identity) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(identity));
    return text;
}

Scenario with_seed(const Loaded& loaded, std::int64_t seed) {
    Scenario scenario = loaded.scenario;
    scenario.seed = static_cast<std::uint64_t>(seed);
    const Node* apart = loaded.tree.find("seeds");
    const auto give = [&](const char* purpose, std::uint64_t& value) {
        if (!apart || !apart->find(purpose)) value = scenario.seed;
    };
    give("init", scenario.seeds.init);
    give("data", scenario.seeds.data);
    give("timing", scenario.seeds.timing);
    return scenario;
}

}  // namespace rubato::cli
