#include "cli/schema_examples.hpp"

#include "cli/schema.hpp"
#include "cli/schema_words.hpp"

#include <algorithm>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

/// A value as --set takes it: strings that are no JSON need no quotes of their own.
std::string set_text(const Node& value) {
    return value.is(Kind::string) ? value.text : value_text(value);
}

/// What the key needs beside itself, before it: (sibling, value).
std::vector<std::pair<std::string, Node>> companions(const SchemaKey& key) {
    std::vector<std::pair<std::string, Node>> needed;
    const Node& siblings = key.object->at("properties");
    if (const Node* condition = key.schema->find("x-goes-with")) {
        const auto& [sibling, where, values] = condition->members.front();
        const Node& sibling_schema = resolved(siblings.at(sibling));
        const Node* fallback = sibling_schema.find("default");
        std::vector<std::string> names;
        for (const auto& value : values.items) {
            if (!is_later(sibling_schema, value.text)) names.push_back(value.text);
        }
        const bool by_default = fallback && std::find(names.begin(), names.end(), fallback->text) != names.end();
        if (!names.empty() && (!by_default || !key.whole.empty()))
            needed.emplace_back(sibling, Node::of(names.front()));
    }
    const Node* dependent = key.object->find("dependentRequired");
    const Node* others = dependent ? dependent->find(key.name) : nullptr;
    if (others) {
        for (const auto& other : others->items) {
            needed.emplace_back(other.text, example_value(resolved(siblings.at(other.text))));
        }
    }
    if (key.whole.empty()) return needed;
    if (const Node* required = required_keys(*key.object)) {
        for (const auto& other : required->items) {
            const bool there =
                std::any_of(needed.begin(), needed.end(), [&](const auto& pair) { return pair.first == other.text; });
            if (other.text != key.name && !there) {
                needed.emplace_back(other.text, example_value(resolved(siblings.at(other.text))));
            }
        }
    }
    return needed;
}

/// Of the examples of the list that a key's object stands in, the first object that has the key; without any: empty.
Node example_item(const SchemaKey& key) {
    for (const auto& list : schema_keys()) {
        const Node* examples = list.path == key.whole ? list.schema->find("examples") : nullptr;
        if (!examples || !key.path.starts_with(key.whole + "[]." + key.name)) continue;
        for (const auto& example : examples->items)
            for (const auto& item : example.items)
                if (item.find(key.name)) return item;
    }
    return Node::object();
}

}  // namespace

std::string value_text(const Node& value) {
    std::string text = to_json(value);
    text.pop_back();
    return text;
}

std::string sibling_path(const SchemaKey& key, const std::string& sibling) {
    return key.path.substr(0, key.path.size() - key.name.size()) + sibling;
}

Node example_value(const Node& schema) {
    if (const Node* examples = schema.find("examples")) return examples->items.front();
    const Node* fallback = schema.find("default");
    if (const Node* values = enumeration(schema)) {
        const auto built = built_values(*values);
        for (const auto& name : built) {
            if (!fallback || name != fallback->text) return Node::of(name);
        }
        return Node::of(built.empty() ? std::string() : built.front());
    }
    if (has_type(schema, "boolean")) return Node::of(!(fallback && fallback->boolean));
    if (fallback) return *fallback;
    if (has_type(schema, "integer") || has_type(schema, "number")) {
        const Node* least = schema.find("minimum");
        return least ? *least : Node::of(std::int64_t{1});
    }
    if (has_type(schema, "string")) return Node::of(std::string("default"));
    return has_type(schema, "array") ? Node{Kind::array, {}, {}, {}, {}, {}, {}, {}} : Node::object();
}

std::vector<std::string> example_sets(const SchemaKey& key) {
    // Layers of a file are read before the command line, and editors read files.
    if (key.later || key.path == "extends" || key.path == "$schema") return {};
    if (!key.whole.empty()) {
        if (key.name == "NAME") return {};
        Node object = example_item(key);
        for (auto& [sibling, value] : companions(key))
            if (!object.find(sibling)) object.set(sibling, std::move(value), {});
        if (!object.find(key.name)) object.set(key.name, example_value(*key.schema), {});
        std::string value = value_text(object);
        if (key.path.starts_with(key.whole + "[]")) value = "[" + value + "]";
        // What the whole goes with has to be there, too.
        std::vector<std::string> sets;
        for (const SchemaKey* whole : keys_at(key.whole))
            for (const auto& [sibling, beside] : companions(*whole))
                sets.push_back(sibling_path(*whole, sibling) + "=" + set_text(beside));
        sets.push_back(key.whole + "=" + value);
        return sets;
    }
    const bool section = key.schema->find("properties") && !key.schema->find("examples");
    if (section) return {};
    // Any name will do for a class of devices, and the default one is what the workers are of.
    const auto named = [](std::string path) {
        if (const auto at = path.find("NAME"); at != std::string::npos) path.replace(at, 4, "default");
        return path;
    };
    std::vector<std::string> sets;
    for (const auto& [sibling, value] : companions(key)) {
        // And what that needs in turn.
        for (const SchemaKey* beside : keys_at(sibling_path(key, sibling)))
            for (const auto& [other, its] : companions(*beside))
                sets.push_back(named(sibling_path(*beside, other)) + "=" + set_text(its));
        sets.push_back(named(sibling_path(key, sibling)) + "=" + set_text(value));
    }
    sets.push_back(named(key.path) + "=" + set_text(example_value(*key.schema)));
    return sets;
}

}  // namespace rubato::cli
