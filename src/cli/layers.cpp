#include "cli/layers.hpp"

#include "cli/json_reader.hpp"
#include "cli/schema.hpp"
#include "cli/suggest.hpp"

#include <algorithm>
#include <filesystem>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;
namespace fs = std::filesystem;
constexpr int file_rank = 1000;

void merge(Node& base, Node over) {
    if (!base.is(Kind::object) || !over.is(Kind::object)) {
        base = std::move(over);
        return;
    }
    base.where = over.where;
    for (auto& [key, where, value] : over.members) {
        Node* below = base.find(key);
        if (below && below->is(Kind::object) && value.is(Kind::object)) {
            merge(*below, std::move(value));
        } else {
            base.set(key, std::move(value), where);
        }
    }
}

/// `chain`: the files that led here, to find cycles.
Node read_file_layers(const std::string& path, std::vector<std::string>& chain) {
    Node node = read_json(path, file_rank - static_cast<int>(chain.size()));
    const Node* extends = node.is(Kind::object) ? node.find("extends") : nullptr;
    if (!extends) return node;
    if (!extends->is(Kind::string) || extends->text.empty()) {
        throw InputError(extends->where, "extends",
                         "expected the path of a scenario file, found " + describe(*extends));
    }
    const std::string base_path = (fs::path(path).parent_path() / extends->text).lexically_normal().string();
    std::error_code error;
    const std::string identity = fs::weakly_canonical(base_path, error).string();
    chain.push_back(fs::weakly_canonical(path, error).string());
    if (std::find(chain.begin(), chain.end(), identity) != chain.end()) {
        throw InputError(extends->where, "extends", "a cycle: " + extends->text + " extends this file in the end");
    }
    if (chain.size() > 64) throw InputError(extends->where, "extends", "more than 64 files extend each other");
    if (!fs::exists(base_path, error)) throw InputError(extends->where, "extends", "there is no file " + base_path);
    if (fs::is_directory(base_path, error))
        throw InputError(extends->where, "extends", base_path + " is a folder, expected a scenario file");
    Node base = read_file_layers(base_path, chain);
    if (!base.is(Kind::object)) {
        throw InputError(base.where, "", "expected a JSON object, found " + describe(base));
    }
    // The name stays that of its own file unless it is said.
    base.erase("name");
    base.erase("extends");
    node.erase("extends");
    merge(base, std::move(node));
    return base;
}

/// Value of --set: JSON, or a bare word as a string.
Node set_value(const std::string& text, const Where& where) {
    if (auto value = try_parse_json(text, where)) return *value;
    if (text.starts_with('{') || text.starts_with('[') || text.starts_with('"')) return parse_json(text, where);
    Node value = Node::of(text);
    value.where = where;
    return value;
}

void apply_set(Node& root, const std::string& assignment) {
    const Where where{std::make_shared<const std::string>(set_label(assignment)), 0, set_rank};
    if (!is_utf8(assignment)) throw InputError(where, "", "a string holds a byte that is not UTF-8");
    const auto equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
        throw InputError(where, "", "expected KEY=VALUE, such as protocol.n=4");
    const std::string path = assignment.substr(0, equals);
    if (split_path(path)[0] == "extends") throw InputError(where, "", "extends cannot be set on the command line");
    set_value_at(root, path, set_value(assignment.substr(equals + 1), where), where);
}

void drop(Node& object, const std::string& path, const std::string& key, const std::string& why, const Where& cause,
          std::vector<std::string>& notes) {
    notes.push_back(path + "." + key + " is dropped: it " + why + " (" + to_text(cause) + ")");
    object.erase(key);
}

/// Whether what `newer` says makes a key written at `older` meaningless. Of two --set flags, and of two layers of a
/// sweep, the one that names the kind does, in either order, so that a script may set `n` for protocols with and
/// without it; within one flag or layer it is an error.
bool outranks(const Where& newer, const Where& older) {
    if (newer.rank > set_rank && older.rank > set_rank) return newer.rank != older.rank;
    if (newer.rank != older.rank) return newer.rank > older.rank;
    return newer.rank == set_rank && to_text(newer) != to_text(older);
}

/// Drops keys of `node` that a newer layer's sibling made meaningless; what one layer says at once is left for the
/// check.
void drop_misfits(Node& node, const Node& schema, const std::string& path, std::vector<std::string>& notes) {
    const Node* properties = schema.find("properties");
    if (!node.is(Kind::object) || !properties) return;
    for (const auto& [key, key_where, declared] : properties->members) {
        const Node& child = resolved(declared);
        if (const Node* condition = child.find("x-goes-with")) {
            const auto& sibling = condition->members.front().key;
            for (const auto& member : node.members) {
                if (member.key != sibling) continue;
                const auto own = std::find_if(node.members.begin(), node.members.end(),
                                              [&name = key](const Member& other) { return other.key == name; });
                if (own == node.members.end() || !outranks(member.where, own->where)) break;
                Node selector = Node::object();
                selector.set(sibling, member.value, {});
                std::string why;
                if (goes_with(child, schema, selector, &why)) break;
                drop(node, path, key, why, Where(member.where), notes);
                break;
            }
        }
        if (const Node* excluded = child.find("x-excludes")) {
            for (const auto& other : excluded->items) {
                const Node* a = node.find(key);
                const Node* b = node.find(other.text);
                if (!a || !b || a->where.rank == b->where.rank) continue;
                const bool first_is_newer = a->where.rank > b->where.rank;
                const Where cause = first_is_newer ? a->where : b->where;
                drop(node, path, first_is_newer ? other.text : key,
                     "cannot stand beside " + (first_is_newer ? key : other.text), cause, notes);
            }
        }
    }
    for (auto& member : node.members) {
        if (const Node* child = properties->find(member.key)) {
            drop_misfits(member.value, resolved(*child), path.empty() ? member.key : path + "." + member.key, notes);
        }
    }
    // Named classes of devices.
    if (const Node* others = schema.find("additionalProperties"); others && others->is(Kind::object)) {
        for (auto& member : node.members) {
            if (!properties->find(member.key))
                drop_misfits(member.value, resolved(*others), path + "." + member.key, notes);
        }
    }
}

/// A platform file and an inline star cannot stand together; the newer layer wins.
void drop_star_or_platform(Node& root, std::vector<std::string>& notes) {
    Node* cluster = root.find("cluster");
    const Node* platform = cluster ? cluster->find("platform") : nullptr;
    Node* network = cluster ? cluster->find("network") : nullptr;
    const Node* star = network ? network->find("star") : nullptr;
    if (!platform || !star) return;
    const Where platform_where = platform->where;
    const Where star_where = star->where;
    if (platform_where.rank == star_where.rank) {
        throw InputError(star_where, "cluster.network.star", "an inline star cannot stand beside cluster.platform");
    }
    if (platform_where.rank > star_where.rank) {
        drop(*network, "cluster.network", "star", "cannot stand beside cluster.platform", platform_where, notes);
    } else {
        drop(*cluster, "cluster", "platform", "cannot stand beside cluster.network.star", star_where, notes);
    }
}

void order(Node& node, const Node& schema) {
    if (const Node* branches = schema.find("anyOf")) {
        for (const auto& branch : branches->items) {
            const Node* required = branch.find("required");
            if (node.is(Kind::object) && required && node.find(required->items.front().text))
                return order(node, branch);
        }
        return;
    }
    for (auto& item : node.items) {
        if (const Node* items = schema.find("items")) order(item, resolved(*items));
    }
    const Node* properties = schema.find("properties");
    if (!node.is(Kind::object) || !properties) return;
    const auto place = [&](const std::string& key) {
        std::size_t i = 0;
        for (const auto& member : properties->members) {
            if (member.key == key) break;
            ++i;
        }
        return i;
    };
    node.members.sort([&](const Member& a, const Member& b) {
        const auto i = place(a.key), j = place(b.key);
        if (i != j || i < properties->members.size()) return i < j;
        // Tables by number: shorter numbers are smaller.
        const bool digits = a.key.find_first_not_of("0123456789") == std::string::npos;
        return digits && a.key.size() != b.key.size() ? a.key.size() < b.key.size() : a.key < b.key;
    });
    const Node* others = schema.find("additionalProperties");
    for (auto& member : node.members) {
        const Node* child = properties->find(member.key);
        if (!child && others && others->is(Kind::object)) child = others;
        if (child) order(member.value, resolved(*child));
    }
}

}  // namespace

void set_value_at(Node& root, const std::string& path, Node value, const Where& where) {
    const auto parts = split_path(path);
    const std::string place = where.line > 0 ? path : "";  // a --set shows its key itself
    Node* node = &root;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool last = i + 1 == parts.size();
        if (parts[i].empty()) throw InputError(where, place, "expected keys with dots between, found \"" + path + "\"");
        if (node->is(Kind::array)) {
            const bool index = parts[i].size() < 9 && parts[i].find_first_not_of("0123456789") == std::string::npos;
            const std::size_t at = index ? std::stoul(parts[i]) : node->items.size();
            if (at >= node->items.size()) {
                throw InputError(
                    where, place,
                    "expected an index below " + std::to_string(node->items.size()) + ", found \"" + parts[i] + "\"");
            }
            node = &node->items[at];
            if (last) *node = std::move(value);
            continue;
        }
        if (!node->is(Kind::object)) {
            throw InputError(where, place,
                             "\"" + parts[i - 1] + "\" is " + describe(*node) + ", it has no key \"" + parts[i] + "\"");
        }
        if (last) {
            node->set(parts[i], std::move(value), where);
        } else if (Node* inner = node->find(parts[i])) {
            node = inner;
        } else {
            Node object = Node::object();
            object.where = where;
            node = &node->set(parts[i], std::move(object), where);
        }
    }
}

Node read_open_layers(const std::string& path, const std::vector<std::string>& sets) {
    std::vector<std::string> chain;
    Node root = read_file_layers(path, chain);
    if (!root.is(Kind::object)) throw InputError(root.where, "", "expected a JSON object, found " + describe(root));
    for (const auto& assignment : sets) apply_set(root, assignment);
    return root;
}

void settle_layers(Node& root, std::vector<std::string>& notes) {
    // For editors alone; the saved scenario does without.
    if (const Node* schema = root.find("$schema"); schema && !schema->is(Kind::string))
        throw InputError(schema->where, "$schema", "expected a string, found " + describe(*schema));
    root.erase("$schema");
    drop_misfits(root, scenario_schema(), "", notes);
    drop_star_or_platform(root, notes);
}

Node read_layers(const std::string& path, const std::vector<std::string>& sets, std::vector<std::string>& notes) {
    Node root = read_open_layers(path, sets);
    settle_layers(root, notes);
    return root;
}

void put_in_order(Node& root) {
    order(root, scenario_schema());
}

}  // namespace rubato::cli
