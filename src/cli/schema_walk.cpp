// The walk over schema and file: types, ranges, names, keys; and the defaults.
#include "cli/schema.hpp"
#include "cli/schema_words.hpp"
#include "cli/suggest.hpp"
#include "cli/units.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

/// The few patterns of the schema. (std::regex would recurse once a character, and slow the build down.)
bool matches(std::string_view pattern, std::string_view text) {
    if (pattern == "^[1-9][0-9]{0,8}$") {
        return !text.empty() && text.size() <= 9 && text.front() != '0' &&
               text.find_first_not_of("0123456789") == std::string_view::npos;
    }
    if (pattern == "^(0|[1-9][0-9]{0,8})$") return text == "0" || matches("^[1-9][0-9]{0,8}$", text);
    if (pattern == R"(^[^/\u0000-\u001f]+$)") {
        return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c == '/' || c < 0x20; });
    }
    throw std::logic_error("the schema has a pattern that the reader does not know: " + std::string(pattern));
}

[[noreturn]] void refuse(const Node& node, const std::string& path, const Node& schema, const std::string& hint = "") {
    throw InputError(node.where, path, "expected " + expectation(schema) + ", found " + describe(node) + hint);
}

void check_number(double value, const Node& node, const Node& schema, const std::string& path) {
    const auto limit = [&](const char* key, auto broken) {
        const Node* bound = schema.find(key);
        // Integers are compared as such: a double would round the largest ones.
        const bool whole = bound && bound->is(Kind::integer) && node.is(Kind::integer);
        if (bound && (whole ? broken(node.integer, bound->integer) : broken(value, bound->number))) {
            refuse(node, path, schema);
        }
    };
    limit("minimum", [](auto v, auto b) { return v < b; });
    limit("exclusiveMinimum", [](auto v, auto b) { return v <= b; });
    limit("maximum", [](auto v, auto b) { return v > b; });
    limit("exclusiveMaximum", [](auto v, auto b) { return v >= b; });
}

void check_enum(Node& node, const Node& schema, const std::string& path) {
    const auto& values = schema.at("enum").items;
    const auto same = [&](const Node& item) { return node.is(Kind::string) && item.text == node.text; };
    const auto built = built_values(schema);
    if (std::none_of(values.begin(), values.end(), same)) {
        std::vector<std::string> all;
        for (const auto& item : values) all.push_back(item.text);
        const std::string near = node.is(Kind::string) ? nearest(node.text, all) : "";
        refuse(node, path, schema, near.empty() ? "" : "; did you mean \"" + near + "\"?");
    }
    if (const Node* later = schema.find("x-not-yet-values")) {
        if (std::any_of(later->items.begin(), later->items.end(), same)) {
            throw InputError(node.where, path,
                             "\"" + node.text + "\" is reserved, but not yet built; there is " + quoted_list(built));
        }
    }
    node.text = canonical(schema, node.text);
}

void check_string(Node& node, const Node& schema, const std::string& path) {
    if (const Node* unit = schema.find("x-unit")) {
        try {
            check_number(parse_quantity(node.text, quantity_named(unit->text)), node, schema, path);
        } catch (const sim::UnitError& error) {
            throw InputError(node.where, path, error.what());
        }
        return;
    }
    const Node* shortest = schema.find("minLength");
    if (shortest && node.text.empty()) throw InputError(node.where, path, "expected some text, found an empty string");
    if (const Node* longest = schema.find("maxLength");
        longest && node.text.size() > static_cast<std::size_t>(longest->integer)) {
        throw InputError(node.where, path,
                         "expected at most " + std::to_string(longest->integer) + " bytes, found " +
                             std::to_string(node.text.size()));
    }
    if (const Node* pattern = schema.find("pattern"); pattern && !matches(pattern->text, node.text)) {
        throw InputError(node.where, path, "expected text that matches " + pattern->text + ", found " + describe(node));
    }
    if (schema.find("x-path")) {
        namespace fs = std::filesystem;
        const fs::path folder = node.where.line > 0 ? fs::path(*node.where.file).parent_path() : fs::path();
        node.text = fs::absolute(folder / node.text).lexically_normal().string();
    }
}

/// Schema of the value of `key`, or null where the key is unknown.
const Node* key_schema(const Node& schema, const std::string& key) {
    if (const Node* properties = schema.find("properties")) {
        if (const Node* found = properties->find(key)) return &resolved(*found);
    }
    if (const Node* patterns = schema.find("patternProperties")) {
        for (const auto& [pattern, where, child] : patterns->members) {
            if (matches(pattern, key)) return &resolved(child);
        }
    }
    const Node* others = schema.find("additionalProperties");
    if (others && others->is(Kind::object)) return &resolved(*others);
    if (others || schema.find("properties")) return nullptr;
    return &schema;
}

void check_object(Node& node, const Node& schema, const std::string& path) {
    const auto at = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
    for (const auto& member : node.members) {
        if (key_schema(schema, member.key)) continue;
        const Node* patterns = schema.find("patternProperties");
        throw InputError(member.where, at(member.key),
                         patterns ? "unknown key; expected a whole number such as \"8\""
                                  : "unknown key" + key_hint(member.key, schema));
    }
    for (auto& [key, where, value] : node.members) {
        const Node* child = key_schema(schema, key);
        const bool nothing = value.is(Kind::array) && value.items.empty();
        if (child->find("x-not-yet") && !nothing) throw InputError(where, at(key), "is reserved, but not yet built");
        check_and_fill(value, *child, at(key));
    }
    if (const Node* required = required_keys(schema)) {
        for (const auto& key : required->items) {
            if (node.find(key.text)) continue;
            throw InputError(node.where, path,
                             "\"" + key.text + "\" is missing: expected " + expectation(*key_schema(schema, key.text)));
        }
    }
    const Node* least = schema.find("minProperties");
    if (least && node.members.empty()) throw InputError(node.where, path, "expected at least one entry");
    const Node* properties = schema.find("properties");
    if (!properties) return;
    for (const auto& [key, where, child] : properties->members) {
        std::string why;
        const Node* value = node.find(key);
        const bool fits = goes_with(resolved(child), schema, node, &why);
        if (value && !fits) throw InputError(value->where, at(key), why);
        const Node* fallback = child.find("default");
        if (value || !fits || !fallback) continue;
        Node filled = *fallback;
        filled.where = {};
        check_and_fill(node.set(key, std::move(filled), {}), child, at(key));
    }
}

void check_any(Node& node, const Node& schema, const std::string& path) {
    const Node* chosen = nullptr;
    for (const auto& branch : schema.at("anyOf").items) {
        if (!type_matches(branch, node)) continue;
        const Node* required = branch.find("required");
        if (required && !node.find(required->items.front().text)) continue;
        if (!chosen) chosen = &branch;
    }
    if (!chosen) refuse(node, path, schema);
    check_and_fill(node, *chosen, path);
}

}  // namespace

void check_and_fill(Node& node, const Node& schema, const std::string& path) {
    if (schema.find("anyOf")) return check_any(node, schema, path);
    if (!type_matches(schema, node)) {
        if (schema.find("enum")) refuse(node, path, schema);
        refuse(node, path, schema, type_hint(schema, node));
    }
    if (schema.find("enum")) return check_enum(node, schema, path);
    if (node.is_number()) check_number(node.number, node, schema, path);
    if (node.is(Kind::string)) check_string(node, schema, path);
    if (node.is(Kind::object)) check_object(node, schema, path);
    if (!node.is(Kind::array)) return;
    const auto count = static_cast<std::int64_t>(node.items.size());
    const Node* least = schema.find("minItems");
    const Node* most = schema.find("maxItems");
    if ((least && count < least->integer) || (most && count > most->integer)) {
        const bool exact = least && most && least->integer == most->integer;
        const bool few = least && count < least->integer;
        const auto limit = few ? least->integer : most->integer;
        throw InputError(node.where, path,
                         "expected " +
                             std::string(exact ? ""
                                         : few ? "at least "
                                               : "at most ") +
                             std::to_string(limit) + (limit == 1 ? " entry" : " entries") + ", found " +
                             std::to_string(count));
    }
    const Node* items = schema.find("items");
    for (std::size_t i = 0; items && i < node.items.size(); ++i) {
        check_and_fill(node.items[i], resolved(*items), path + "[" + std::to_string(i) + "]");
    }
}

void check_and_fill(Node& root) {
    if (!root.is(Kind::object)) {
        throw InputError(root.where, "", "expected a JSON object, found " + describe(root));
    }
    check_and_fill(root, scenario_schema(), "");
}

}  // namespace rubato::cli
