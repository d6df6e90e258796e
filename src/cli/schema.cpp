#include "cli/schema.hpp"

#include "cli/json_reader.hpp"
#include "cli/suggest.hpp"

#include <algorithm>

namespace rubato::cli {

const Node& scenario_schema() {
    static const Node schema = parse_json(std::string(scenario_schema_text()),
                                          {std::make_shared<const std::string>("scenario.schema.json"), 1, 0});
    return schema;
}

const Node& resolved(const Node& schema) {
    const Node* ref = schema.find("$ref");
    if (!ref) return schema;
    constexpr std::string_view prefix = "#/$defs/";
    return scenario_schema().at("$defs").at(std::string_view(ref->text).substr(prefix.size()));
}

const Node* required_keys(const Node& schema) {
    const Node* otherwise = schema.find("else");
    return otherwise ? otherwise->find("required") : schema.find("required");
}

const Node* schema_at(const std::string& path) {
    const Node* schema = &scenario_schema();
    for (std::size_t begin = 0; begin <= path.size();) {
        const auto dot = std::min(path.find('.', begin), path.size());
        const Node* properties = schema->find("properties");
        schema = properties ? properties->find(path.substr(begin, dot - begin)) : nullptr;
        if (!schema) return nullptr;
        schema = &resolved(*schema);
        begin = dot + 1;
    }
    return schema;
}

std::string canonical(const Node& schema, const std::string& value) {
    const Node* aliases = schema.find("x-aliases");
    const Node* alias = aliases ? aliases->find(value) : nullptr;
    return alias ? alias->text : value;
}

bool goes_with(const Node& key_schema, const Node& object_schema, const Node& object, std::string* why) {
    if (const Node* condition = key_schema.find("x-goes-with")) {
        const auto& [sibling, where, values] = condition->members.front();
        const Node& sibling_schema = object_schema.at("properties").at(sibling);
        const Node* value = object.find(sibling);
        if (!value) value = sibling_schema.find("default");
        const std::string name = value ? canonical(sibling_schema, value->text) : "";
        const auto same = [&](const Node& item) { return item.text == name; };
        if (std::none_of(values.items.begin(), values.items.end(), same)) {
            if (why) {
                std::vector<std::string> names;
                for (const auto& item : values.items) names.push_back("\"" + item.text + "\"");
                *why = "goes with " + sibling + " " + one_of(names) + ", here " + sibling + " is \"" + name + "\"";
            }
            return false;
        }
    }
    if (const Node* excluded = key_schema.find("x-excludes")) {
        for (const auto& sibling : excluded->items) {
            if (!object.find(sibling.text)) continue;
            if (why) *why = "cannot stand beside " + sibling.text;
            return false;
        }
    }
    return true;
}

}  // namespace rubato::cli
