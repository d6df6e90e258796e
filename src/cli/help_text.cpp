#include "cli/help_text.hpp"

#include "cli/schema.hpp"
#include "cli/schema_examples.hpp"
#include "cli/schema_words.hpp"
#include "cli/suggest.hpp"
#include "cli/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

/// As a shell takes it.
std::string shell_quoted(const std::string& text) {
    const bool plain = text.find_first_of(" \t'\"$&|;<>()*?[]{}`\\!#~^") == std::string::npos;
    return plain ? text : "'" + text + "'";
}

std::string row(const std::string& label, const std::string& text) {
    return fmt::format("  {:<11}{}\n", label, text);
}

std::string mark(bool later) {
    return later ? " (not yet)" : "";
}

const Node* text_of(const Node& schema, std::string_view key) {
    const Node* text = schema.find(key);
    return text && text->is(Kind::string) ? text : nullptr;
}

std::string description_of(const Node& schema) {
    const Node* text = text_of(schema, "description");
    return text ? text->text : "";
}

std::string join(const Node& list) {
    std::vector<std::string> words;
    for (const auto& item : list.items) words.push_back(item.text);
    return one_of(words, "and");
}

/// "1 to 64 entries, each an integer ...".
std::string entries_text(const Node& schema) {
    const Node* least = schema.find("minItems");
    const Node* most = schema.find("maxItems");
    std::string count = "entries";
    if (least && most) {
        count = least->integer == most->integer ? fmt::format("{} entries", least->integer)
                                                : fmt::format("{} to {} entries", least->integer, most->integer);
    } else if (most) {
        count = fmt::format("at most {} entries", most->integer);
    }
    const Node* items = schema.find("items");
    return items ? count + ", each " + expectation(resolved(*items)) : count;
}

std::string text_rule(const Node& schema) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
    const Node* least = schema.find("minLength");
    if (const Node* most = schema.find("maxLength")) {
        add(fmt::format("{} to {} bytes", least ? least->integer : 0, most->integer));
    } else if (least) {
        add("not empty");
    }
    if (const Node* pattern = schema.find("pattern")) add("matches " + pattern->text);
    if (schema.find("x-path")) add("a path, relative to the file that holds it");
    return text;
}

/// Unit of a plain number, and how strings carry one.
std::string unit_text(const Node& schema) {
    if (const Node* measure = schema.find("x-measure")) return measure->text;
    const Node* unit = schema.find("x-unit");
    if (!unit) return "";
    const std::string spelling = std::string(example(quantity_named(unit->text)));
    return fmt::format("a number is in {}; a string says its unit: {}", number_unit(unit->text), spelling);
}

bool is_required(const SchemaKey& key) {
    const Node* required = required_keys(*key.object);
    return required && std::any_of(required->items.begin(), required->items.end(),
                                   [&](const Node& item) { return item.text == key.name; });
}

std::string default_text(const SchemaKey& key) {
    if (is_required(key)) return "none: it must be given";
    if (const Node* value = key.schema->find("default")) {
        return value->is(Kind::object) && value->members.empty() ? "the defaults of its keys" : value_text(*value);
    }
    const Node* words = text_of(*key.schema, "x-default");
    return words ? words->text : "none";
}

/// Sets that the command line cannot do are shown as they stand in a file.
std::string example_text(const SchemaKey& key) {
    const auto sets = example_sets(key);
    if (sets.empty()) {
        return key.schema->find("examples") ? "\"" + key.path + "\": " + value_text(example_value(*key.schema)) : "";
    }
    std::string text;
    for (const auto& set : sets) text += (text.empty() ? "--set " : " --set ") + shell_quoted(set);
    return text;
}

/// The keys one level below.
std::string keys_below(const SchemaKey& key) {
    std::vector<const SchemaKey*> below;
    std::size_t width = 0;
    for (const auto& other : schema_keys()) {
        if (!other.path.starts_with(key.path)) continue;
        std::string rest = other.path.substr(key.path.size());
        if (rest.starts_with("[]")) rest.erase(0, 2);
        if (!rest.starts_with('.') || rest.find_first_of(".[", 1) != std::string::npos) continue;
        below.push_back(&other);
        width = std::max(width, other.name.size() + (other.later ? 10 : 0));
    }
    std::string text = below.empty() ? "" : "\n  keys\n";
    for (const SchemaKey* other : below) {
        text +=
            fmt::format("    {:<{}}  {}\n", other->name + mark(other->later), width, description_of(*other->schema));
    }
    return text;
}

std::string values_below(const Node& schema) {
    const Node* values = enumeration(schema);
    if (!values) return "";
    std::size_t width = 0;
    for (const auto& value : named_values(*values)) width = std::max(width, value.name.size());
    std::string text = "\n  values\n";
    for (const auto& value : named_values(*values)) {
        std::string line = fmt::format("    {:<{}}  {}", value.name, width, value.what + mark(!value.built));
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

}  // namespace

std::string key_line(const SchemaKey& key) {
    return key.path + mark(key.later) + ": " + description_of(*key.schema);
}

std::string key_text(const SchemaKey& key) {
    const Node& schema = *key.schema;
    std::string text = key_line(key) + "\n";
    if (key.later) text += row("", "reserved: a scenario that uses it is refused for now");
    text += row("value", enumeration(schema) && schema.find("enum") ? "one of the names below" : expectation(schema));
    if (has_type(schema, "array")) text += row("entries", entries_text(schema));
    if (const std::string rule = text_rule(schema); !rule.empty()) text += row("text", rule);
    if (const std::string unit = unit_text(schema); !unit.empty()) text += row("unit", unit);
    text += row("default", default_text(key));
    if (const Node* condition = schema.find("x-goes-with")) {
        const auto& [sibling, where, values] = condition->members.front();
        std::vector<std::string> names;
        for (const auto& value : values.items) names.push_back("\"" + value.text + "\"");
        text += row("goes with", sibling_path(key, sibling) + " " + one_of(names));
    }
    const Node* dependent = key.object->find("dependentRequired");
    if (const Node* others = dependent ? dependent->find(key.name) : nullptr) text += row("needs", join(*others));
    if (const Node* excluded = schema.find("x-excludes")) text += row("never with", join(*excluded));
    if (const Node* variables = schema.find("x-variables")) text += row("variables", join(*variables));
    if (const Node* table = schema.find("patternProperties")) {
        const Node& entry = resolved(table->members.front().value);
        text += row("table", "keys are whole numbers, such as \"8\"; each value " + expectation(entry) + ": " +
                                 description_of(entry));
        if (const std::string unit = unit_text(entry); !unit.empty()) text += row("unit", unit);
    }
    if (const std::string example = example_text(key); !example.empty()) text += row("example", example);
    return text + values_below(schema) + keys_below(key);
}

std::string scenario_text() {
    std::string text = description_of(scenario_schema()) + "\n\n";
    for (const auto& key : schema_keys()) {
        if (key.path.find('.') != std::string::npos || key.path.find('[') != std::string::npos) continue;
        text += fmt::format("  {:<11}{}{}\n", key.path, description_of(*key.schema), mark(key.later));
    }
    return text + "\nrubato help KEY tells about one of them, such as rubato help protocol or protocol.name.\n";
}

std::vector<std::string> word_texts(const std::string& word) {
    std::vector<std::string> described, plain;
    for (const auto& key : schema_keys()) {
        const Node* values = enumeration(*key.schema);
        if (!values) continue;
        const std::string name = canonical(*values, word);
        for (const auto& value : named_values(*values)) {
            if (value.name != name) continue;
            std::string text = name + mark(!value.built) + (value.what.empty() ? "" : ": " + value.what) + "\n";
            text += row("value of", key.path);
            std::vector<std::string> keys;
            for (const auto& other : schema_keys()) {
                const Node* condition = other.object == key.object ? other.schema->find("x-goes-with") : nullptr;
                if (!condition || condition->members.front().key != key.name) continue;
                const auto& names = condition->members.front().value.items;
                const bool fits =
                    std::any_of(names.begin(), names.end(), [&](const Node& n) { return n.text == name; });
                if (fits) keys.push_back(other.path + mark(other.later));
            }
            if (!keys.empty()) text += row("its keys", one_of(keys, "and"));
            if (value.built && !key.later && key.whole.empty())
                text += row("example", "--set " + key.path + "=" + name);
            (value.what.empty() ? plain : described).push_back(text);
        }
    }
    return described.empty() ? plain : described;
}

std::vector<std::string> all_words() {
    std::vector<std::string> words;
    for (const auto& key : schema_keys()) {
        const Node* values = enumeration(*key.schema);
        if (!values) continue;
        for (const auto& item : values->at("enum").items) words.push_back(item.text);
    }
    return words;
}

}  // namespace rubato::cli
