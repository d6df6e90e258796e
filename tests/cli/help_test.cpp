// What `rubato help` says is what the reader does: examples are accepted, and every key and name is found.
#include "cli/help_text.hpp"
#include "cli/schema.hpp"
#include "cli/schema_examples.hpp"
#include "cli/scratch.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace rubato::cli;

namespace {

const std::string devices = "\"cluster\": {\"devices\": {\"default\": {}, \"v100\": {\"c\": 1}}}";

/// Scenarios of which at least one gives each key a meaning.
std::vector<std::string> bases() {
    const std::string limits = "\"stop\": {\"epochs\": 1}, \"data\": {\"validation\": 0.1}, " + devices;
    const std::string bare =
        "{\"cost\": {\"push_bytes\": 10, \"flops_per_sample\": 1}, \"workers\": {\"count\": 8}, \"protocol\": "
        "{\"name\": \"async\"}}";
    const std::string no_count =
        "{\"model\": {\"name\": \"softmax\"}, \"workers\": {}, \"protocol\": {\"name\": "
        "\"async\"}}";
    const std::string own =
        "{\"cost\": {\"push_bytes\": 10, \"flops_per_sample\": 1}, \"workers\": {\"count\": 8}, \"protocol\": "
        "{\"name\": \"plugin\", \"file\": \"own.so\"}}";
    return {small(), small(devices), learning(limits), bare, no_count, own};
}

std::string refusals(const std::vector<std::string>& sets) {
    std::string all;
    for (const auto& base : bases()) {
        const std::string message = error_of(base, sets);
        if (message.empty()) return {};
        all += "\n  " + message;
    }
    return all;
}

const SchemaKey& only(const std::string& path) {
    const auto keys = keys_at(path);
    REQUIRE_MESSAGE(keys.size() == 1, path);
    return *keys.front();
}

bool has(const std::string& text, const std::string& piece) {
    return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("the example of every key is accepted as it stands") {
    // The files that examples name and that are read with the scenario.
    const Scratch scratch;
    for (const auto& key : schema_keys()) {
        if (key.name == "profile")
            scratch.write(example_value(*key.schema).text,
                          R"({"profile_version": 1, "compute": {"default": {"batches": {"32": {"mean": 0.1}}}}})");
    }
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(scratch.folder);
    int tried = 0;
    for (const auto& key : schema_keys()) {
        const auto sets = example_sets(key);
        if (sets.empty()) continue;
        for (const auto& set : sets) CHECK(set.find('\n') == std::string::npos);
        CHECK_MESSAGE(refusals(sets).empty(), key.path << ": " << sets.back() << refusals(sets));
        ++tried;
    }
    std::filesystem::current_path(before);
    CHECK(tried > 80);
}

TEST_CASE("only keys that no flag can set have no example") {
    for (const auto& key : schema_keys()) {
        const bool section = key.schema->find("properties") != nullptr;
        const bool file_only = key.path == "extends" || key.path == "$schema";
        const bool constant = key.path.starts_with("optimizer.staleness_rule.") && key.name == "NAME";
        if (key.later || section || file_only || constant) continue;
        CHECK_MESSAGE(!example_sets(key).empty(), key.path);
    }
}

TEST_CASE("every key is found by its path and tells what it is") {
    for (const auto& key : schema_keys()) {
        const auto found = keys_at(key.path);
        REQUIRE_MESSAGE(!found.empty(), key.path);
        CHECK(std::any_of(found.begin(), found.end(), [&](const SchemaKey* other) { return other == &key; }));
        const std::string text = key_text(key);
        CHECK_MESSAGE(has(text, "\n  value      "), text);
        CHECK_MESSAGE(has(text, "\n  default    "), text);
        CHECK_MESSAGE(!has(text, "\n  value      \n"), text);
        CHECK_MESSAGE(has(text, key.later ? " (not yet): " : key.path + ": "), text);
        const auto colon = text.find(": ");
        CHECK_MESSAGE((colon != std::string::npos && text[colon + 2] != '\n'), key.path << " has no description");
    }
}

TEST_CASE("paths may be shortened, and name what a user named") {
    CHECK(only("batch_size").path == "workers.batch_size");
    CHECK(only("star.bandwidth").path == "cluster.network.star.bandwidth");
    CHECK(only("workers.groups.count").path == "workers.groups[].count");
    CHECK(only("workers.groups[1].count").path == "workers.groups[].count");
    CHECK(only("workers.groups.1.count").path == "workers.groups[].count");
    CHECK(only("workers.hosts.30").path == "workers.hosts");
    CHECK(only("cluster.devices.v100.c").path == "cluster.devices.NAME.c");
    CHECK(only("cluster.devices.v100.seconds.8").path == "cluster.devices.NAME.seconds");
    CHECK(only("optimizer.staleness_rule.exponent").path == "optimizer.staleness_rule.exponent");
    CHECK(only("protocol").path == "protocol");
    CHECK(keys_at("count").size() == 2);
    for (const char* wrong : {"", ".", "batch", "protocol.count", "optimizer.staleness_rule.exponet", "v100", "3"}) {
        CHECK_MESSAGE(keys_at(wrong).empty(), wrong);
    }
}

TEST_CASE("a key tells type, unit, default, bounds, company and an example") {
    const std::string n = key_text(only("protocol.n"));
    for (const char* piece : {"an integer of at least 1", "protocol.name \"n-softsync\"", "gradients_per_update",
                              "--set protocol.name=n-softsync --set protocol.n=2"}) {
        CHECK_MESSAGE(has(n, piece), n);
    }
    const std::string bandwidth = key_text(only("cluster.network.star.bandwidth"));
    for (const char* piece : {"above 0", "bytes/s", "\"10Gbps\" (bits)", "1.25e+09"}) CHECK(has(bandwidth, piece));
    CHECK(has(key_text(only("cost.flops_per_sample")), "floating-point operations"));
    CHECK(has(key_text(only("cluster.server.push_s")), "a number is in seconds"));
    CHECK(has(key_text(only("cluster.devices.NAME.p")), "needs      c"));
    CHECK(has(key_text(only("data.shape")), "3 entries, each an integer from 1 to 4096"));
    CHECK(has(key_text(only("name")), "1 to 100 bytes"));
    CHECK(has(key_text(only("workers.groups.count")), "none: it must be given"));
    CHECK(has(key_text(only("optimizer.staleness_rule.expression")), "variables  staleness, age"));
    CHECK(has(key_text(only("workers")), "slots (not yet)"));
    CHECK(has(key_text(only("stop.target.metric")), "'stop.target={\"at_most\": 0.12, \"metric\": \"valid_loss\"}'"));
    CHECK(has(scenario_text(), "\n  workers "));
}

TEST_CASE("every name of a value is explained, aliases too") {
    for (const auto& word : all_words()) CHECK_MESSAGE(!word_texts(word).empty(), word);
    CHECK(word_texts("hardsink").empty());
    REQUIRE(word_texts("softsync").size() == 1);
    const std::string soft = word_texts("softsync").front();
    CHECK(soft.starts_with("n-softsync: an update after every floor"));
    CHECK(has(soft, "protocol.n and protocol.gradients_per_update"));
    CHECK(has(soft, "--set protocol.name=n-softsync"));
    CHECK(has(word_texts("agd").front(), "--set protocol.name=delayed"));
    CHECK(word_texts("none").size() == 3);
    CHECK(has(word_texts("inverse-n").front(), "value of   optimizer.staleness_rule\n"));
}

TEST_CASE("$schema is a string that no run depends on") {
    CHECK(error_of(small("\"$schema\": 3")) == "scenario.json:5: $schema: expected a string, found the number 3");
    const Loaded with = read_text(small("\"$schema\": \"../src/cli/scenario.schema.json\""));
    CHECK(with.resolved_json == read_text(small()).resolved_json);
    CHECK(hash8(with) == hash8(read_text(small())));
    CHECK(error_of(small("\"trace\": {\"$schema\": \"x\"}")).find("trace.$schema: unknown key") != std::string::npos);
}
