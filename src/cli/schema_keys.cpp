#include "cli/schema_keys.hpp"

#include "cli/schema.hpp"

#include <algorithm>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

/// What the walk knows of the object at hand.
struct Place {
    std::string path;
    std::string whole;
    bool later = false;
};

void collect(const Node& schema, const Place& place, std::vector<SchemaKey>& keys) {
    if (const Node* branches = schema.find("anyOf")) {
        for (const auto& branch : branches->items) {
            collect(branch, {place.path, place.whole.empty() ? place.path : place.whole, place.later}, keys);
        }
    }
    if (const Node* items = schema.find("items")) {
        collect(resolved(*items), {place.path + "[]", place.whole.empty() ? place.path : place.whole, place.later},
                keys);
    }
    const auto add = [&](const std::string& name, const Node& child) {
        const std::string path = place.path.empty() ? name : place.path + "." + name;
        const bool later = place.later || child.find("x-not-yet");
        keys.push_back({path, name, &child, &schema, place.whole, later});
        // What must be whole to be valid is set as a whole.
        const bool needy = child.find("required") && !place.path.empty();
        collect(child, {path, place.whole.empty() && needy ? path : place.whole, later}, keys);
    };
    if (const Node* properties = schema.find("properties")) {
        for (const auto& [key, where, child] : properties->members) {
            if (key != "comment" || place.path.empty()) add(key, resolved(child));
        }
    }
    const Node* others = schema.find("additionalProperties");
    if (others && others->is(Kind::object)) add("NAME", resolved(*others));
}

/// Parts of a path without those that point into an array.
std::vector<std::string> parts_of(const std::string& path) {
    auto parts = split_path(path);
    std::erase_if(parts, [](const auto& part) { return part.find_first_not_of("0123456789") == std::string::npos; });
    return parts;
}

/// Whether `parts` are the last ones of `key`. A name of the user's choice stands only before further keys: alone, any
/// misspelt key would be one.
bool ends_in(const std::vector<std::string>& key, const std::vector<std::string>& parts) {
    if (parts.size() > key.size()) return false;
    const std::size_t skipped = key.size() - parts.size();
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const bool free = key[skipped + i] == "NAME" && skipped == 0;
        if (key[skipped + i] != parts[i] && !free) return false;
    }
    return true;
}

}  // namespace

const std::vector<SchemaKey>& schema_keys() {
    static const auto keys = [] {
        std::vector<SchemaKey> all;
        collect(scenario_schema(), {}, all);
        return all;
    }();
    return keys;
}

std::vector<const SchemaKey*> keys_at(const std::string& path) {
    const auto parts = parts_of(path);
    std::vector<const SchemaKey*> exact, ending;
    if (parts.empty()) return {};
    for (const auto& key : schema_keys()) {
        const auto own = parts_of(key.path);
        // A constant of an expression is a name of the user's choice too, but holds no further keys.
        const bool scalar_name = key.name == "NAME" && !key.schema->find("properties") && parts.back() != "NAME";
        if (scalar_name || !ends_in(own, parts)) continue;
        (own.size() == parts.size() ? exact : ending).push_back(&key);
    }
    return exact.empty() ? ending : std::vector<const SchemaKey*>{exact.front()};
}

const Node* enumeration(const Node& schema) {
    if (schema.find("enum")) return &schema;
    const Node* branches = schema.find("anyOf");
    if (!branches) return nullptr;
    for (const auto& branch : branches->items) {
        if (branch.find("enum")) return &branch;
    }
    return nullptr;
}

bool is_later(const Node& schema, const std::string& value) {
    const Node* later = schema.find("x-not-yet-values");
    return later &&
           std::any_of(later->items.begin(), later->items.end(), [&](const Node& item) { return item.text == value; });
}

std::vector<NamedValue> named_values(const Node& schema) {
    const Node* aliases = schema.find("x-aliases");
    const Node* lines = schema.find("x-values");
    std::vector<NamedValue> values;
    for (const bool built : {true, false}) {
        for (const auto& item : schema.at("enum").items) {
            if (is_later(schema, item.text) == built || (aliases && aliases->find(item.text))) continue;
            const Node* line = lines ? lines->find(item.text) : nullptr;
            std::string what = line ? line->text : "", also;
            for (const auto& alias : aliases ? aliases->members : std::list<Member>{}) {
                if (alias.value.text == item.text) also += (also.empty() ? "; also called " : ", ") + alias.key;
            }
            values.push_back({item.text, what + also, built});
        }
    }
    return values;
}

}  // namespace rubato::cli
