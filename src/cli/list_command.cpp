// rubato list: what the schema and the catalogues know.
#include "cli/backends.hpp"
#include "cli/commands.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/schema.hpp"
#include "cli/schema_keys.hpp"
#include "cli/suggest.hpp"
#include "learn/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace rubato::cli {
namespace {

void print(const std::string& name, const std::string& what, bool built) {
    fmt::print("  {:<24}{}{}\n", name, what, built ? "" : " (not yet)");
}

void print_values(const Node& schema) {
    for (const auto& value : named_values(schema)) print(value.name, value.what, value.built);
}

/// Names, and those that only stand beside other keys, such as a plugin with its file.
void print_rules() {
    const Node& rule = *schema_at("optimizer.staleness_rule");
    const Node& alone = *enumeration(rule);
    print_values(alone);
    std::vector<std::string> names;
    for (const auto& value : named_values(alone)) names.push_back(value.name);
    for (const auto* key : keys_at("optimizer.staleness_rule.name"))
        for (const auto& value : named_values(*key->schema))
            if (std::find(names.begin(), names.end(), value.name) == names.end())
                print(value.name, value.what, value.built);
}

void print_cost() {
    for (const auto& entry : learn::all()) {
        print(entry.name,
              fmt::format("{} parameters, messages of {} bytes, {:.3g} flops a sample; {}", entry.parameters,
                          entry.bytes, entry.flops_per_sample, entry.source),
              true);
    }
}

void print_topic(const std::string& topic) {
    if (topic == "protocols") return print_values(*schema_at("protocol.name"));
    if (topic == "rules") return print_rules();
    if (topic == "topologies") return print_values(*schema_at("topology.name"));
    if (topic == "models") return print_values(*schema_at("model.name"));
    if (topic == "datasets") return print_values(*schema_at("data.dataset"));
    if (topic == "cost") return print_cost();
    for (const auto& backend : backends()) print(backend.name, backend.what, backend.built);
}

}  // namespace

const std::vector<std::string>& list_topics() {
    static const std::vector<std::string> topics{"protocols", "rules",    "topologies", "models",
                                                 "datasets",  "backends", "cost"};
    return topics;
}

int list_command(const std::string& what) {
    const auto& topics = list_topics();
    if (!what.empty() && std::find(topics.begin(), topics.end(), what) == topics.end()) {
        const std::string near = nearest(what, topics);
        throw InputError("list " + what + ": expected " + one_of(topics) +
                         (near.empty() ? "" : "; did you mean " + near + "?"));
    }
    for (const auto& topic : topics) {
        if (!what.empty() && what != topic) continue;
        if (what.empty()) fmt::print("{}\n", topic);
        print_topic(topic);
    }
    return exit_finished;
}

}  // namespace rubato::cli
