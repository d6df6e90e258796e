// A valid file, cut short or with bytes altered: it is accepted or refused with one line, and nothing else happens.
#include "cli/scratch.hpp"
#include "support/random.hpp"

#include <doctest/doctest.h>

using namespace rubato::cli;
using rubato::test::Random;

namespace {

const std::string valid = R"({"name": "m", "comment": "caf\u00e9", "seed": 3, "seeds": {"data": 4},
 "data": {"dataset": "synthetic", "samples": 1000, "shape": [8, 8, 1], "validation": 0.1, "sampling": "strided"},
 "model": {"name": "mlp", "hidden": [16, 8], "gradients": "real"}, "cost": {"push_bytes": "1MB", "pull_bytes": 5e5},
 "workers": {"groups": [{"count": 3, "device": "a"}, {"count": 2, "device": "b"}], "batch_size": 8, "hosts": {"5": 2}},
 "protocol": {"name": "n-softsync", "n": 2}, "topology": {"name": "star"},
 "optimizer": {"name": "momentum", "momentum": 0.9, "staleness_rule": {"expression": "1/(1+staleness)^a", "a": 0.5},
               "schedule": [{"epoch": 1, "factor": 0.1}]},
 "stop": {"epochs": 2, "seconds": "1h", "target": {"metric": "valid_error", "at_most": 0.1}},
 "evaluate": {"every_epochs": 0.5}, "faults": [],
 "cluster": {"network": {"concurrent_transfers": null, "star": {"bandwidth": "25Gbps", "latency": "10us"}},
             "devices": {"a": {"seconds": {"8": 0.03, "32": "90ms"}}, "b": {"c": 0.1, "p": 0.9, "b0": 8}}},
 "trace": {"gradients": {"every": 10}, "events": true}}
)";

/// Empty when all is well.
std::string trouble(const std::string& path) {
    try {
        const Loaded loaded = read_scenario(path);
        return loaded.resolved_json.empty() ? "nothing came of it" : "";
    } catch (const InputError& error) {
        const std::string what = error.what();
        return what.empty() || what.find('\n') != std::string::npos ? "not one line: " + what : "";
    } catch (const std::exception& error) {
        return std::string("another exception: ") + error.what();
    }
}

}  // namespace

TEST_CASE("a file that is cut short anywhere is refused with one line") {
    const Scratch scratch;
    REQUIRE(trouble(scratch.write("valid.json", valid)).empty());
    for (std::size_t length = 0; length + 2 < valid.size(); ++length) {
        const std::string path = scratch.write("cut.json", valid.substr(0, length));
        const std::string problem = trouble(path);
        REQUIRE_MESSAGE(problem.empty(), "length " << length << ": " << problem);
        CHECK_THROWS_AS(read_scenario(path), InputError);
    }
}

TEST_CASE("altered bytes, pieces swapped in: accepted or refused, never more") {
    const Scratch scratch;
    Random random{2024};
    const std::string pieces[] = {
        "null", "-1",  "1e308", "1e-400", "[]", "{}",      "\"\"", "true", "99999999999999999999", "\"nan\"",
        "0",    "[[[", ",",     ":",      "}",  "\\u0000", "\xc3", "NaN",  "\"5 apples\""};
    for (int round = 0; round < 3000; ++round) {
        std::string text = valid;
        const auto changes = 1 + random.below(3);
        for (std::size_t change = 0; change < changes; ++change) {
            const std::size_t at = random.below(text.size());
            switch (random.below(4)) {
                case 0: text[at] = static_cast<char>(random.below(256)); break;
                case 1: text.erase(at, 1 + random.below(12)); break;
                case 2: text.insert(at, pieces[random.below(std::size(pieces))]); break;
                default: {
                    // A whole value is replaced: from behind a colon to the next comma or brace.
                    const auto colon = text.find(": ", at);
                    if (colon == std::string::npos) break;
                    const auto end = text.find_first_of(",}]", colon);
                    if (end == std::string::npos) break;
                    text.replace(colon + 2, end - colon - 2, pieces[random.below(std::size(pieces))]);
                }
            }
        }
        const std::string problem = trouble(scratch.write("altered.json", text));
        REQUIRE_MESSAGE(problem.empty(), "round " << round << ": " << problem << "\n" << text);
    }
}

TEST_CASE("altered --set values: accepted or refused, never more") {
    const Scratch scratch;
    const std::string path = scratch.write("valid.json", valid);
    const std::string keys[] = {"seed",
                                "workers",
                                "workers.hosts",
                                "protocol",
                                "protocol.name",
                                "protocol.n",
                                "cost",
                                "optimizer.staleness_rule",
                                "optimizer.staleness_rule.expression",
                                "cluster.devices.a",
                                "cluster.network.star",
                                "cluster.platform",
                                "trace",
                                "stop.target",
                                "data.shape.1",
                                "workers.groups[1].count",
                                "a..b",
                                ".",
                                "model",
                                "model.name",
                                "faults",
                                "extends"};
    const std::string values[] = {"1",    "-1",    "null", "[]",   "{}",      "{\"name\":1}",         "word",
                                  "\"\"", "1e400", "{",    "true", "[1,2,3]", "{\"name\":\"async\"}", "1/0",
                                  "0.5"};
    for (const auto& key : keys) {
        for (const auto& value : values) {
            try {
                read_scenario(path, {key + "=" + value});
            } catch (const InputError& error) {
                CHECK(std::string(error.what()).find('\n') == std::string::npos);
            }
        }
    }
}
