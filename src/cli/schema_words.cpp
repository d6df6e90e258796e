// What messages say about the schema: expectations and suggestions.
#include "cli/schema_words.hpp"

#include "cli/schema_keys.hpp"
#include "cli/suggest.hpp"
#include "cli/units.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

std::string number_text(const Node& node) {
    std::string text = to_json(node);
    text.pop_back();
    return text;
}

/// Whether it would be one in JSON, as the program can hold it.
bool is_number(const std::string& text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

bool has_type(const Node& schema, std::string_view name) {
    const Node* type = schema.find("type");
    if (!type) return name == "string" && schema.find("enum");
    if (type->is(Kind::string)) return type->text == name;
    return std::any_of(type->items.begin(), type->items.end(), [&](const Node& item) { return item.text == name; });
}

bool type_matches(const Node& schema, const Node& node) {
    switch (node.kind) {
        case Kind::null: return has_type(schema, "null");
        case Kind::boolean: return has_type(schema, "boolean");
        case Kind::integer:
        case Kind::number: return has_type(schema, "number") || (has_type(schema, "integer") && node.is_whole());
        case Kind::string: return has_type(schema, "string");
        case Kind::array: return has_type(schema, "array");
        case Kind::object: return has_type(schema, "object");
    }
    return false;
}

namespace {

/// " of at least 1", " from 0 to 10", " above 0".
std::string range_text(const Node& schema) {
    const Node* low = schema.find("minimum");
    const Node* above = schema.find("exclusiveMinimum");
    const Node* high = schema.find("maximum");
    const Node* below = schema.find("exclusiveMaximum");
    std::string text;
    if (low && high) return " from " + number_text(*low) + " to " + number_text(*high);
    if (low) text += " of at least " + number_text(*low);
    if (above) text += " above " + number_text(*above);
    if (high) text += std::string(text.empty() ? "" : " and") + " at most " + number_text(*high);
    if (below) text += std::string(text.empty() ? "" : " and") + " below " + number_text(*below);
    return text;
}

}  // namespace

std::vector<std::string> built_values(const Node& schema) {
    std::vector<std::string> names;
    const Node* later = schema.find("x-not-yet-values");
    const Node* aliases = schema.find("x-aliases");
    for (const auto& item : schema.at("enum").items) {
        const auto same = [&](const Node& other) { return other.text == item.text; };
        if (later && std::any_of(later->items.begin(), later->items.end(), same)) continue;
        if (!aliases || !aliases->find(item.text)) names.push_back(item.text);
    }
    return names;
}

std::string quoted_list(std::vector<std::string> names) {
    for (auto& name : names) name = "\"" + name + "\"";
    return one_of(names);
}

std::string expectation(const Node& schema) {
    if (schema.find("enum"))
        return (schema.at("enum").items.size() > 1 ? "one of " : "") + quoted_list(built_values(schema));
    std::vector<std::string> kinds;
    if (const Node* branches = schema.find("anyOf")) {
        for (const auto& branch : branches->items) {
            std::string text = branch.find("enum") ? "a name" : expectation(branch);
            if (const Node* required = branch.find("required"))
                text += " with \"" + required->items.front().text + "\"";
            kinds.push_back(text);
        }
        return one_of(kinds);
    }
    const Node* unit = schema.find("x-unit");
    const std::string range = range_text(schema);
    if (has_type(schema, "integer")) kinds.push_back("an integer" + range);
    if (has_type(schema, "number")) kinds.push_back("a number" + range);
    if (unit) {
        kinds.push_back("a string with a unit such as " + std::string(example(quantity_named(unit->text))));
    } else if (has_type(schema, "string")) {
        kinds.emplace_back("a string");
    }
    if (has_type(schema, "boolean")) kinds.emplace_back("true or false");
    if (has_type(schema, "array")) kinds.emplace_back("an array");
    if (has_type(schema, "object")) kinds.emplace_back("an object");
    if (has_type(schema, "null")) kinds.emplace_back("null");
    return one_of(kinds);
}

std::string type_hint(const Node& schema, const Node& node) {
    if (node.is(Kind::string) && (has_type(schema, "integer") || has_type(schema, "number")) && is_number(node.text)) {
        return "; write " + node.text + " without quotes";
    }
    if (node.is(Kind::string) && has_type(schema, "boolean") && (node.text == "true" || node.text == "false")) {
        return "; write " + node.text + " without quotes";
    }
    if (node.is(Kind::string) && has_type(schema, "object")) {
        const Node* properties = schema.find("properties");
        if (properties && properties->find("name")) return "; did you mean {\"name\": \"" + node.text + "\"}?";
    }
    return "";
}

std::string key_hint(const std::string& key, const Node& schema) {
    std::vector<std::string> places;
    std::vector<std::string> names;
    for (const auto& known : schema_keys()) {
        if (known.name == "NAME") continue;
        names.push_back(known.name);
        const bool listed = std::find(places.begin(), places.end(), known.path) != places.end();
        if (known.name == key && !listed) places.push_back(known.path);
    }
    std::vector<std::string> here;
    if (const Node* properties = schema.find("properties")) {
        for (const auto& member : properties->members) here.push_back(member.key);
    }
    // A letter too many or too few is a slip of the pen, even where a key elsewhere has that name.
    const std::string near_here = nearest(key, here);
    const bool slip = near_here.size() >= 4 && (near_here == key + "s" || key == near_here + "s");
    if (const std::string& near = near_here; !near.empty() && (places.empty() || slip)) {
        return "; did you mean \"" + near + "\"?";
    }
    if (!places.empty()) {
        if (places.size() > 3) places.resize(3);
        return "; it belongs at " + one_of(places);
    }
    // A unit that was forgotten.
    for (const std::string& name : here)
        if (name.starts_with(key + "_")) return "; did you mean \"" + name + "\"?";
    const std::string near = nearest(key, names);
    for (const auto& known : schema_keys()) {
        if (!near.empty() && known.name == near) return "; did you mean " + known.path + "?";
    }
    return here.empty() ? "" : "; known are " + one_of(here, "and");
}

}  // namespace rubato::cli
