#include "cli/sweep/sweep_file.hpp"

#include "cli/json_reader.hpp"
#include "cli/layers.hpp"
#include "cli/schema.hpp"
#include "cli/suggest.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;
using Kind = Node::Kind;

const Node& sweep_schema() {
    static const Node schema =
        parse_json(std::string(sweep_schema_text()), {std::make_shared<const std::string>("sweep.schema.json"), 1, 0});
    return schema;
}

/// Told here, before the walk, whose hints are about scenarios.
void refuse_unknown_keys(const Node& node, const Node& schema, const std::string& path) {
    if (!node.is(Kind::object)) return;
    std::vector<std::string> known;
    for (const auto& member : schema.at("properties").members) known.push_back(member.key);
    for (const auto& member : node.members) {
        if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
        const std::string near = nearest(member.key, known);
        std::string hint = near.empty() ? "; known are " + one_of(known, "and") : "; did you mean \"" + near + "\"?";
        const bool scenario_key = schema_at(member.key.substr(0, member.key.find('.'))) != nullptr;
        if (near.empty() && scenario_key && path.empty())
            hint = "; it is a key of scenarios: it belongs into the base, the axes, or a variant's \"set\"";
        if (near.empty() && scenario_key && path.starts_with("variants"))
            hint = "; a variant's keys of the scenario stand in its \"set\"";
        throw InputError(member.where, path.empty() ? member.key : path + "." + member.key, "unknown key" + hint);
    }
}

void set_ranks(Node& node, int rank) {
    node.where.rank = rank;
    for (auto& item : node.items) set_ranks(item, rank);
    for (auto& member : node.members) {
        member.where.rank = rank;
        set_ranks(member.value, rank);
    }
}

/// Keys that a sweep cannot vary, with the reason.
void check_key(const std::string& key, const Where& where, const std::string& path) {
    const auto parts = split_path(key);
    const std::string& first = parts.front();
    if (std::find(parts.begin(), parts.end(), "") != parts.end())
        throw InputError(where, path, "expected a key of the scenario with dots between its parts, such as protocol.n");
    if (first == "seed") throw InputError(where, path, "seeds are listed in \"seeds\"");
    for (const char* fixed : {"extends", "name", "$schema"}) {
        if (first == fixed) throw InputError(where, path, "\"" + first + "\" cannot be varied");
    }
    if (std::find(parts.begin(), parts.end(), "comment") != parts.end())
        throw InputError(where, path, "comments cannot be varied: they are for people and change nothing");
}

/// A comment among axes is a text; one with values would be taken for an axis by its author.
void refuse_comment_axes(const Node* axes, const std::string& path) {
    const Node* comment = axes ? axes->find("comment") : nullptr;
    if (!comment || comment->is(Kind::string)) return;
    throw InputError(comment->where, path + ".comment",
                     "comments cannot be varied: expected a text for people, found " + describe(*comment));
}

/// Reads sections one after the other; each layer of values gets a rank of its own.
class Reader {
public:
    explicit Reader(SweepFile& sweep) : sweep_(sweep) {}

    void read() {
        for (auto& [key, where, value] : sweep_.tree.members) {
            if (key == "seeds") sweep_.seeds = seeds(value, "seeds");
            if (key == "variants") variants(value);
            if (key == "axes") sweep_.axes = axes(value, "axes");
            if (key == "tune") tuning(value);
            if (key == "where") std::tie(sweep_.where, sweep_.where_place) = std::tie(value.text, value.where);
        }
        if (sweep_.variants.empty()) sweep_.variants.push_back({"base", {}});
        zip();
        check_apart();
    }

private:
    void swept(const std::string& key) {
        if (std::find(sweep_.swept.begin(), sweep_.swept.end(), key) == sweep_.swept.end()) sweep_.swept.push_back(key);
    }

    static std::vector<std::int64_t> seeds(const Node& node, const std::string& path) {
        std::vector<std::int64_t> all;
        std::set<std::int64_t> seen;
        for (const Node& item : node.items) {
            if (!seen.insert(item.whole()).second)
                throw InputError(item.where, path, "seed " + std::to_string(item.whole()) + " stands there twice");
            all.push_back(item.whole());
        }
        return all;
    }

    void variants(const Node& node) {
        ++rank_;
        std::set<std::string> labels;
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            const Node& item = node.items[i];
            const std::string path = "variants[" + std::to_string(i) + "]";
            Variant variant{item.at("label").text, {}};
            if (std::any_of(variant.label.begin(), variant.label.end(), [](unsigned char c) { return c < 32; }))
                throw InputError(item.at("label").where, path + ".label",
                                 "expected a name in one line, without line breaks and tabs");
            if (!labels.insert(variant.label).second)
                throw InputError(item.at("label").where, path + ".label",
                                 "label \"" + variant.label + "\" stands there twice");
            const Node* set = item.find("set");
            for (const auto& member : set ? set->members : std::list<Member>{}) {
                if (member.key == "comment") continue;
                check_key(member.key, member.where, path + ".set." + member.key);
                variant.sets.push_back({member.key, ranked(member.where), member.value});
                set_ranks(variant.sets.back().value, rank_);
                swept(member.key);
            }
            sweep_.variants.push_back(std::move(variant));
        }
    }

    std::vector<Axis> axes(const Node& node, const std::string& path) {
        std::vector<Axis> all;
        for (const auto& member : node.members) {
            if (member.key == "comment") continue;
            ++rank_;
            check_key(member.key, member.where, path + "." + member.key);
            Axis axis{member.key, ranked(member.where), member.value.items};
            for (std::size_t i = 0; i < axis.values.size(); ++i) {
                for (std::size_t j = 0; j < i && axis.values.size() <= 1000; ++j) {
                    if (same_value(axis.values[i], axis.values[j]))
                        throw InputError(
                            axis.values[i].where, path + "." + member.key,
                            "value " + std::to_string(i + 1) + " is the same as value " + std::to_string(j + 1));
                }
            }
            for (Node& value : axis.values) set_ranks(value, rank_);
            all.push_back(std::move(axis));
            swept(member.key);
        }
        return all;
    }

    void tuning(const Node& node) {
        Tuning tuning;
        tuning.axes = axes(node.at("axes"), "tune.axes");
        if (tuning.axes.empty())
            throw InputError(node.at("axes").where, "tune.axes", "expected at least 1 key to tune");
        tuning.by = node.at("by").text;
        tuning.by_where = node.at("by").where;
        tuning.seeds = seeds(node.at("seeds"), "tune.seeds");
        sweep_.tuning = std::move(tuning);
    }

    /// Dimensions in the order of the axes; those of a group stand at its first axis.
    void zip() {
        const Node* zip = sweep_.tree.find("zip");
        std::vector<std::vector<std::size_t>> groups;
        std::vector<bool> taken(sweep_.axes.size());
        for (std::size_t g = 0; zip && g < zip->items.size(); ++g) {
            const std::string path = "zip[" + std::to_string(g) + "]";
            std::vector<std::size_t> group;
            for (const Node& item : zip->items[g].items) {
                const std::size_t axis = axis_named(item, path);
                if (taken[axis]) throw InputError(item.where, path, "\"" + item.text + "\" stands there twice");
                taken[axis] = true;
                const auto size = sweep_.axes[axis].values.size();
                const Axis& first = sweep_.axes[group.empty() ? axis : group.front()];
                if (size != first.values.size())
                    throw InputError(item.where, path,
                                     "axes that advance together need as many values each: \"" + first.key + "\" has " +
                                         std::to_string(first.values.size()) + ", \"" + item.text + "\" has " +
                                         std::to_string(size));
                group.push_back(axis);
            }
            groups.push_back(std::move(group));
        }
        for (std::size_t axis = 0; axis < sweep_.axes.size(); ++axis) {
            const auto has = [&](const auto& group) { return *std::min_element(group.begin(), group.end()) == axis; };
            const auto group = std::find_if(groups.begin(), groups.end(), has);
            if (group != groups.end()) sweep_.dimensions.push_back({*group, sweep_.axes[axis].values.size()});
            if (group == groups.end() && !taken[axis])
                sweep_.dimensions.push_back({{axis}, sweep_.axes[axis].values.size()});
        }
    }

    std::size_t axis_named(const Node& item, const std::string& path) const {
        std::vector<std::string> names;
        for (const Axis& axis : sweep_.axes) names.push_back(axis.key);
        const auto found = std::find(names.begin(), names.end(), item.text);
        if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
        const std::string near = nearest(item.text, names);
        throw InputError(
            item.where, path,
            "\"" + item.text + "\" is none of the axes" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }

    /// Of two layers that set the same key the later one would win in silence.
    void check_apart() const {
        std::vector<const Axis*> all;
        for (const Axis& axis : sweep_.axes) all.push_back(&axis);
        for (const Axis& axis : sweep_.tuning ? sweep_.tuning->axes : std::vector<Axis>{}) {
            for (const Axis* other : all) {
                if (overlap(axis.key, other->key))
                    throw InputError(axis.where, "tune.axes." + axis.key,
                                     "is set by the axis \"" + other->key + "\" already");
            }
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                if (overlap(all[i]->key, all[j]->key))
                    throw InputError(all[i]->where, "axes." + all[i]->key,
                                     "is set by the axis \"" + all[j]->key + "\" already");
            }
        }
        const auto& tuning = sweep_.tuning;
        for (const std::int64_t seed : tuning ? tuning->seeds : std::vector<std::int64_t>{}) {
            if (std::find(sweep_.seeds.begin(), sweep_.seeds.end(), seed) != sweep_.seeds.end())
                throw InputError(sweep_.tree.at("tune").at("seeds").where, "tune.seeds",
                                 "seed " + std::to_string(seed) +
                                     " is one of \"seeds\" too: what was tuned on a seed says little on the same");
        }
    }

    /// One is the other or lies in it.
    static bool overlap(const std::string& a, const std::string& b) {
        return a == b || a.starts_with(b + ".") || b.starts_with(a + ".");
    }

    Where ranked(Where where) const {
        where.rank = rank_;
        return where;
    }

    SweepFile& sweep_;
    int rank_ = set_rank;
};

void check_tree(Node& tree) {
    if (!tree.is(Kind::object)) throw InputError(tree.where, "", "expected a JSON object, found " + describe(tree));
    const Node& schema = sweep_schema();
    const Node& properties = schema.at("properties");
    refuse_unknown_keys(tree, schema, "");
    refuse_comment_axes(tree.find("axes"), "axes");
    if (const Node* variants = tree.find("variants")) {
        for (std::size_t i = 0; i < variants->items.size(); ++i)
            refuse_unknown_keys(variants->items[i], properties.at("variants").at("items"),
                                "variants[" + std::to_string(i) + "]");
    }
    if (Node* tune = tree.find("tune")) {
        refuse_unknown_keys(*tune, properties.at("tune"), "tune");
        refuse_comment_axes(tune->find("axes"), "tune.axes");
        const Node* by = tune->find("by");
        if (by && by->text.starts_with("test_"))
            throw InputError(by->where, "tune.by",
                             "\"" + by->text +
                                 "\" is of the test set, which may not choose anything: tune by valid_error or "
                                 "valid_loss (data.validation), or by train_loss");
    }
    check_and_fill(tree, schema, "");
}

/// The seed that the base itself says, for sweeps without seeds.
std::int64_t base_seed(const Node& base) {
    const Node* seed = base.find("seed");
    return seed && seed->is_whole() ? seed->whole() : 1;
}

}  // namespace

SweepFile read_sweep(const std::string& path, const std::vector<std::string>& sets) {
    SweepFile sweep;
    sweep.path = path;
    sweep.name = fs::path(path).stem().string();
    sweep.tree = read_json(path, set_rank);
    check_tree(sweep.tree);
    const Node& base = sweep.tree.at("base");
    const std::string base_path = (fs::path(path).parent_path() / base.text).lexically_normal().string();
    std::error_code error;
    if (!fs::exists(base_path, error)) throw InputError(base.where, "base", "there is no file " + base_path);
    if (fs::is_directory(base_path, error))
        throw InputError(base.where, "base", base_path + " is a folder, expected a scenario file");
    sweep.base = read_open_layers(base_path, sets);
    sweep.base_name = fs::path(base_path).stem().string();
    Reader(sweep).read();
    if (sweep.seeds.empty()) sweep.seeds.push_back(base_seed(sweep.base));
    return sweep;
}

}  // namespace rubato::cli
