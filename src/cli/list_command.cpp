// rubato list: what the schema and the catalogues know.
#include "cli/backends.hpp"
#include "cli/commands.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/schema.hpp"
#include "cli/suggest.hpp"
#include "learn/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace rubato::cli {
namespace {

void print(const std::string& name, const std::string& what, bool built) {
    fmt::print("  {:<24}{}{}\n", name, what, built ? "" : " (not yet)");
}

/// The values of an enumeration, built ones first.
void print_values(const Node& schema) {
    const Node* later = schema.find("x-not-yet-values");
    const Node* aliases = schema.find("x-aliases");
    const auto is_built = [&](const std::string& name) {
        return !later || std::none_of(later->items.begin(), later->items.end(),
                                      [&](const Node& item) { return item.text == name; });
    };
    for (const bool built : {true, false}) {
        for (const auto& [name, where, what] : schema.at("x-values").members) {
            if (is_built(name) != built) continue;
            std::string also;
            for (const auto& alias : aliases ? aliases->members : std::vector<Member>{}) {
                if (alias.value.text == name) also += (also.empty() ? "; also called " : ", ") + alias.key;
            }
            print(name, what.text + also, built);
        }
    }
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
    if (topic == "rules") return print_values(schema_at("optimizer.staleness_rule")->at("anyOf").items.front());
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
