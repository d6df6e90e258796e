// rubato help TOPIC: what the schema, the lists and the backends know about a key or a word.
#include "cli/backends.hpp"
#include "cli/commands.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/help_text.hpp"
#include "cli/schema.hpp"
#include "cli/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace rubato::cli {
namespace {

[[noreturn]] void refuse(const std::string& topic, std::vector<std::string> candidates) {
    for (const auto& key : schema_keys()) {
        candidates.push_back(key.path);
        candidates.push_back(key.name);
    }
    for (auto& word : all_words()) candidates.push_back(std::move(word));
    for (const auto& backend : backends()) candidates.emplace_back(backend.name);
    candidates.insert(candidates.end(), list_topics().begin(), list_topics().end());
    // A path that goes wrong in its last part is near to a key of the same section.
    const auto dot = topic.rfind('.');
    const std::string section = dot == std::string::npos ? "" : topic.substr(0, dot);
    std::vector<std::string> siblings;
    for (const auto& key : schema_keys()) {
        if (!section.empty() && key.path.starts_with(section + ".")) siblings.push_back(key.path.substr(dot + 1));
    }
    std::string near = dot == std::string::npos ? "" : nearest(topic.substr(dot + 1), siblings);
    near = near.empty() ? nearest(topic, candidates) : section + "." + near;
    throw InputError("help: \"" + topic + "\" is no key of a scenario, no command and no name that rubato knows" +
                     (near.empty() ? "; rubato help scenario lists the sections" : "; did you mean " + near + "?"));
}

void print(const std::string& text, bool& first) {
    fmt::print("{}{}", first ? "" : "\n", text);
    first = false;
}

}  // namespace

int schema_command() {
    const auto text = scenario_schema_text();
    std::fwrite(text.data(), 1, text.size(), stdout);
    return exit_finished;
}

int help_command(const std::string& topic, const std::vector<std::string>& commands) {
    if (topic == "scenario") {
        fmt::print("{}", scenario_text());
        return exit_finished;
    }
    const auto& topics = list_topics();
    if (std::find(topics.begin(), topics.end(), topic) != topics.end()) return list_command(topic);
    const auto keys = keys_at(topic);
    bool first = true;
    if (keys.size() == 1) print(key_text(*keys.front()), first);
    if (keys.size() == 1 && keys.front()->path == topic) {
        std::vector<std::string> others;
        for (const auto& key : schema_keys()) {
            if (key.name == topic && key.path != topic) others.push_back(key.path);
        }
        if (!others.empty()) fmt::print("\n  other keys of this name: {}\n", one_of(others, "and"));
        return exit_finished;
    }
    for (const auto& text : word_texts(topic)) print(text, first);
    for (const auto& backend : backends()) {
        if (topic != backend.name) continue;
        print(fmt::format("{}{}: {}\n  a backend  rubato run SCENARIO --backend {}\n", topic,
                          backend.built ? "" : " (not yet)", backend.what, topic),
              first);
    }
    const auto among = [&](const std::vector<std::string>& words) {
        return std::find(words.begin(), words.end(), topic) != words.end();
    };
    for (const auto& key : schema_keys()) {
        const Node* variables = key.schema->find("x-variables");
        if (!variables) continue;
        const bool named = std::any_of(variables->items.begin(), variables->items.end(),
                                       [&](const Node& item) { return item.text == topic; });
        if (named) print(topic + ": a variable of " + key.path + "\n", first);
    }
    if (among(plot_kinds())) print(fmt::format("{0}: a figure; rubato plot {0} --help\n", topic), first);
    if (keys.size() > 1) {
        print("keys called " + topic + ":\n", first);
        for (const auto* key : keys) fmt::print("  {}\n", key_line(*key));
    }
    if (first) refuse(topic, commands);
    return exit_finished;
}

}  // namespace rubato::cli
