// From the file to the typed value: defaults, layers, the command line, combinations, the resolved text.
#include "cli/resume.hpp"
#include "cli/scratch.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::cli;

TEST_CASE("a misspelt default class of devices is refused, not passed over") {
    CHECK(error_of(small("\"cluster\": {\"devices\": {\"defualt\": {\"seconds\": {\"8\": 1}}}}"))
              .find("the workers are of device class \"default\", which is not among defualt") != std::string::npos);
}

TEST_CASE("leaves of a tree are beside the workers where workers.hosts says who shares a host") {
    const auto by_host = [](const std::string& workers, const std::vector<std::string>& sets = {}) {
        return read_text("{\"cost\": {\"model\": \"resnet50\"}, \"protocol\": {\"name\": \"async\"}, \"workers\": {" +
                             workers + "}, \"topology\": {\"name\": \"tree\"}}",
                         sets)
            .scenario.tree.leaves_by_host;
    };
    CHECK(by_host("\"count\": 8, \"hosts\": {\"8\": 2, \"9\": 3}"));
    CHECK(by_host("\"count\": 9, \"hosts\": {\"8\": 2, \"9\": 3}",
                  {"topology.name=tree-downcast", "workers.pipeline=overlap"}));
    CHECK_FALSE(by_host("\"count\": 8, \"hosts\": 2", {"topology.leaves=even"}));
    CHECK_FALSE(by_host("\"count\": 8"));
    CHECK_FALSE(by_host("\"count\": 8, \"per_host\": 4"));
}

TEST_CASE("what a run does not depend on makes it no other run, whichever version wrote it into a checkpoint") {
    const Loaded loaded = read_text(small());
    CHECK(differing_keys(loaded, identity_json(loaded)).empty());
    CHECK(differing_keys(loaded, to_json(loaded.tree, false)).empty());  // with stop, trace and all of execution
    const Loaded other = read_text(small(), {"execution.pool_threads=7", "stop.updates=3", "trace.gradients=false",
                                             "execution.checkpoint.every_updates=2"});
    CHECK(differing_keys(other, to_json(loaded.tree, false)).empty());
    CHECK(differing_keys(read_text(small(), {"seed=9"}), to_json(loaded.tree, false)) ==
          std::vector<std::string>{"seed"});
    CHECK(ends_alike(read_text(small(), {"execution.pool_threads=7", "trace.events=true"}), loaded.tree));
    CHECK_FALSE(ends_alike(other, loaded.tree));
    CHECK_FALSE(ends_alike(read_text(small(), {"trace.updates=false"}), loaded.tree));
}

TEST_CASE("a scenario of three keys is valid, and its defaults are those of the schema") {
    const Loaded loaded = read_text(small());
    const Scenario& s = loaded.scenario;
    CHECK(s.name == "scenario");
    CHECK(s.lambda() == 8);
    CHECK(s.seeds.timing == 1);
    CHECK(s.model.name.empty());
    CHECK_FALSE(s.model.gradients);
    CHECK(s.cost.push_bytes == 102228128);
    CHECK(s.cost.parameters == 25557032);
    CHECK(s.data.samples == 1281167);
    CHECK(s.data.sampling == Sampling::shared_epoch);
    CHECK(s.workers.batch_size == 32);
    CHECK(s.workers.groups.at(0).device == "default");
    CHECK(s.cluster.devices.at("default").kind == DeviceSpec::Kind::flops);
    CHECK(s.optimizer.learning_rate == 0.01);
    CHECK(s.optimizer.staleness_rule.kind == StalenessRule::Kind::none);
    CHECK(s.stop.epochs == 1.0);
    CHECK(s.stop.on_divergence);
    CHECK_FALSE(s.evaluate.at_end);
    CHECK(s.cluster.network.concurrent_transfers == 8);
    CHECK(s.cluster.network.simgrid == "CM02");
    CHECK(s.cluster.network.star == StarSpec{});
    CHECK(s.trace.gradients);
    CHECK_FALSE(s.trace.events);
    CHECK(loaded.notes.empty());

    const Scenario real = read_text(learning("\"seed\": 7, \"seeds\": {\"data\": 3}")).scenario;
    CHECK(real.model.gradients);
    CHECK(real.evaluate.at_end);
    CHECK(real.data.samples == 10000);
    CHECK(real.data.shape == std::vector<int>{28, 28, 1});
    CHECK(real.seeds.init == 7);
    CHECK(real.seeds.data == 3);
}

TEST_CASE("a new seed on a saved scenario sets all seeds that were not set apart") {
    const Loaded saved = read_text(learning("\"seed\": 7, \"seeds\": {\"data\": 3}"));
    const Scenario again = read_text(saved.resolved_json, {"seed=9"}).scenario;
    CHECK(again.seeds.init == 9);
    CHECK(again.seeds.data == 3);
    CHECK(again.seeds.timing == 9);
    CHECK_FALSE(read_text(saved.resolved_json, {"model.gradients=none"}).scenario.evaluate.at_end);
    CHECK(read_text(small(), {"cost={\"push_bytes\": \"1kB\", \"flops_per_sample\": 1}"}).scenario.cost.pull_bytes ==
          1000);
}

TEST_CASE("aliases become the canonical name") {
    CHECK(read_text(small(), {"protocol.name=ssgd"}).scenario.protocol.name == "hardsync");
    CHECK(read_text(small(), {"protocol={\"name\":\"k-batch-async\",\"gradients_per_update\":3}"})
              .scenario.protocol.name == "n-softsync");
    CHECK(read_text(small(), {"protocol={\"name\":\"softsync\"}"}).scenario.protocol.n == 1);
    CHECK(read_text(small(), {"protocol.name=ssgd"}).resolved_json.find("hardsync") != std::string::npos);
}

TEST_CASE("--set takes JSON and bare words, and an object replaces") {
    const auto with = [](std::vector<std::string> sets) {
        return read_text(small("\"optimizer\": {\"name\": \"momentum\", \"momentum\": 0.5}"), sets);
    };
    CHECK(with({"optimizer.learning_rate=0.25"}).scenario.optimizer.learning_rate == 0.25);
    CHECK(with({"cluster.network.star.bandwidth=25Gbps"}).scenario.cluster.network.star.bandwidth == 3.125e9);
    CHECK(with({"cluster.network.concurrent_transfers=null"}).scenario.cluster.network.concurrent_transfers == 0);
    CHECK(with({"optimizer={\"learning_rate\": 1}"}).scenario.optimizer.name == "sgd");
    CHECK(with({"trace.gradients.every=5"}).scenario.trace.every == 5);
    CHECK(with({"stop.updates=10", "stop.epochs=2"}).scenario.stop.updates == 10);
    CHECK(with({"optimizer.schedule=[{\"epoch\":1,\"factor\":0.1}]", "optimizer.schedule[0].factor=0.5"})
              .scenario.optimizer.schedule.at(0)
              .factor == 0.5);
    CHECK(error_of(small(), {"optimizer.learing_rate=1"}) ==
          "--set optimizer.learing_rate=1: optimizer.learing_rate: unknown key; did you mean \"learning_rate\"?");
    CHECK(error_of(small(), {"optimizer"}) == "--set optimizer: expected KEY=VALUE, such as protocol.n=4");
    CHECK(error_of(small(), {"protocol={\"name\":}"}).find("--set protocol={\"name\":}: ") == 0);
    CHECK(error_of(small(), {"workers.count=[1"}) == "--set workers.count=[1: the array is not closed");
    CHECK(error_of(small(), {"workers={\"count\":1,\"count\":2}"}) ==
          "--set workers={\"count\":1,\"count\":2}: duplicate key \"count\"");
    CHECK(error_of(small(), {"name.a=1"}).empty() == false);
    CHECK(error_of(small("\"optimizer\": {\"staleness_rule\": \"none\"}"), {"optimizer.staleness_rule.exponent=1"})
              .find("\"staleness_rule\" is the string \"none\", it has no key \"exponent\"") != std::string::npos);
    CHECK(error_of(small(), {"workers.count=\"8\""}).find("expected an integer") != std::string::npos);
}

TEST_CASE("setting a protocol drops the keys that do not go with it, whatever the order of flags") {
    const std::string text =
        "{\"cost\": {\"push_bytes\": 10, \"flops_per_sample\": 1}, \"workers\": {\"count\": 8},\n\"protocol\": "
        "{\"name\": \"n-softsync\", \"n\": 4}}";
    const Loaded loaded = read_text(text, {"protocol.name=async"});
    CHECK(loaded.scenario.protocol.name == "async");
    REQUIRE(loaded.notes.size() == 1);
    CHECK(
        loaded.notes[0] ==
        "protocol.n is dropped: it goes with name \"n-softsync\", here name is \"async\" (--set protocol.name=async)");
    CHECK(read_text(text, {"protocol.name=softsync"}).scenario.protocol.n == 4);
    for (const auto& flags : {std::vector<std::string>{"protocol.n=2", "protocol.name=async"},
                              std::vector<std::string>{"protocol.name=async", "protocol.n=2"}}) {
        const Loaded either = read_text(text, flags);
        CHECK(either.scenario.protocol.name == "async");
        REQUIRE(either.notes.size() == 1);
        CHECK(either.notes[0].starts_with("protocol.n is dropped"));
    }
    // Said in one breath, or of a protocol that the file names, it is a mistake.
    CHECK(error_of(text, {"protocol={\"name\": \"async\", \"n\": 2}"}).find("goes with name \"n-softsync\"") !=
          std::string::npos);
    CHECK(error_of("{\"cost\": {\"model\": \"alexnet\"}, \"workers\": {\"count\": 8}, \"protocol\": {\"name\": "
                   "\"async\"}}",
                   {"protocol.n=2"})
              .find("goes with name \"n-softsync\"") != std::string::npos);

    const Loaded cost = read_text(text, {"cost.model=alexnet"});
    CHECK(cost.scenario.cost.push_bytes == 243860896);
    CHECK(cost.notes.size() == 2);
    const Loaded count = read_text(text, {"protocol.gradients_per_update=3"});
    CHECK(gradients_per_update(count.scenario.protocol, 8) == 3);
    CHECK(count.notes.size() == 1);
}

TEST_CASE("extends merges objects, replaces arrays and refuses cycles") {
    const Scratch scratch;
    std::filesystem::create_directories(scratch.folder / "sub");
    scratch.write("base.json",
                  small("\"name\": \"base\", \"data\": {\"dataset\": \"idx\", \"path\": \"d\"},\n\"optimizer\": "
                        "{\"learning_rate\": 0.5, \"schedule\": [{\"epoch\": 1, \"factor\": 0.1}]}"));
    const std::string path = scratch.write("sub/child.json",
                                           "{\"extends\": \"../base.json\",\n\"optimizer\": {\"schedule\": [],\n"
                                           "\"weight_decay\": 0.1}, \"workers\": {\"count\": 3}}");
    const Loaded loaded = read_scenario(path);
    CHECK(loaded.scenario.name == "child");
    CHECK(loaded.scenario.lambda() == 3);
    CHECK(loaded.scenario.optimizer.learning_rate == 0.5);
    CHECK(loaded.scenario.optimizer.weight_decay == 0.1);
    CHECK(loaded.scenario.optimizer.schedule.empty());
    CHECK(loaded.scenario.data.path == (scratch.folder / "d").string());
    CHECK(loaded.resolved_json.find("extends") == std::string::npos);

    const std::string a = scratch.write("a.json", "{\n\"extends\": \"b.json\"}");
    scratch.write("b.json", "{\"extends\": \"./a.json\"}");
    CHECK_THROWS_WITH(read_scenario(a), doctest::Contains("b.json:1: extends: a cycle"));
    const std::string gone = scratch.write("gone.json", "{\n\"extends\": \"nothing.json\"}");
    CHECK_THROWS_WITH(read_scenario(gone), doctest::Contains("gone.json:2: extends: there is no file"));
    // An error in a base is told with the base's file and line.
    scratch.write("bad.json", "{\n\n\"optimiser\": {}}");
    const std::string over =
        scratch.write("over.json", "{\"extends\": \"bad.json\", \"protocol\": {\"name\": \"async\"}}");
    CHECK_THROWS_WITH(read_scenario(over),
                      doctest::Contains("bad.json:3: optimiser: unknown key; did you mean \"optimizer\"?"));
    // A child that names another protocol need not know what the base said about its own.
    const std::string soft = scratch.write("soft.json", small());
    scratch.write("n.json", "{\"extends\": \"soft.json\", \"protocol\": {\"name\": \"n-softsync\", \"n\": 2}}");
    const Loaded again =
        read_scenario(scratch.write("h.json", "{\"extends\": \"n.json\", \"protocol\": {\"name\": \"hardsync\"}}"));
    CHECK(again.scenario.protocol.name == "hardsync");
    CHECK(again.notes.size() == 1);
}

TEST_CASE("combinations without a meaning are refused with the reason") {
    CHECK(error_of("{\"workers\": {\"count\": 2}, \"protocol\": {\"name\": \"async\"}}")
              .find("neither model nor cost is given") != std::string::npos);
    CHECK(error_of(small(), {"protocol={\"name\":\"n-softsync\",\"n\":9}"}) ==
          "--set protocol={\"name\":\"n-softsync\",\"n\":9}: protocol.n: expected at most the number of workers, 8, "
          "found 9: "
          "floor(lambda / n) gradients an update would be none (n and the number of workers go together)");
    CHECK(error_of(small(), {"protocol={\"name\":\"n-softsync\",\"n\":2,\"gradients_per_update\":2}"})
              .find("protocol.n: cannot stand beside gradients_per_update") != std::string::npos);
    CHECK(error_of(small("\"stop\": {\"epochs\": 1, \"target\": {\"at_most\": 0.1}}"))
              .find("stop.target: a timing-only run has no valid_error") != std::string::npos);
    CHECK(error_of(small("\"evaluate\": {\"every_epochs\": 1}")).find("a timing-only run has no weights") !=
          std::string::npos);
    CHECK(error_of(learning("\"stop\": {\"epochs\": 1, \"target\": {\"at_most\": 0.1}}")).find("set data.validation") !=
          std::string::npos);
    CHECK(error_of(learning("\"stop\": {\"target\": {\"metric\": \"test_error\", \"at_most\": 0.1}}"))
              .find("may never be reached") != std::string::npos);
    CHECK(error_of(small(), {"workers.device=gpu"})
              .find("\"gpu\" is not defined in cluster.devices (defined: default)") != std::string::npos);
    CHECK(error_of(small("\"cluster\": {\"devices\": {\"v100\": {\"a\": 1}}}"), {"workers.device=v10"})
              .find("did you mean \"v100\"?") != std::string::npos);
    CHECK(error_of(small(), {"workers.batch_size=0"}).find("expected an integer from 1") != std::string::npos);
    CHECK(error_of(small(), {"workers.groups=[{\"count\":2}]"}).find("cannot stand beside groups") !=
          std::string::npos);
    CHECK(error_of(small("\"cluster\": {\"platform\": \"p.xml\", \"network\": {\"star\": {}}}"))
              .find("cannot stand beside cluster.platform") != std::string::npos);
    CHECK(error_of(small("\"cluster\": {\"hosts\": [\"a\"]}")).find("cluster.platform is not given") !=
          std::string::npos);
    CHECK(error_of(learning(), {"model.hidden=[3]"})
              .find("model.hidden: goes with name \"mlp\", here name is \"softmax\"") != std::string::npos);
    CHECK(error_of(learning("\"data\": {\"dataset\": \"fashion-mnist\", \"samples\": 5}"))
              .find("number of samples of its own") != std::string::npos);
    CHECK(
        error_of(small("\"optimizer\": {\"schedule\": [{\"epoch\": 2, \"factor\": 1}, {\"epoch\": 1, \"factor\": 1}]}"))
            .find("optimizer.schedule[1].epoch: expected epochs in ascending order") != std::string::npos);
    CHECK(error_of(small("\"cluster\": {\"devices\": {\"default\": {\"p\": 1}}}")).find("p and b0 need c") !=
          std::string::npos);
    CHECK(error_of(small("\"cluster\": {\"devices\": {\"x\": {\"a\": 1, \"c\": 1}}}")).find("cannot stand beside a") !=
          std::string::npos);
}

TEST_CASE("hosts by number of workers") {
    const std::string table = "workers.hosts={\"1\":1,\"8\":2,\"30\":4}";
    CHECK(read_text(small(), {table}).scenario.workers.hosts == 2);
    CHECK(read_text(small(), {table, "workers.count=30"}).scenario.workers.hosts == 4);
    CHECK(error_of(small(), {table, "workers.count=7"}).find("no entry for 7 workers, only for 1, 8 and 30") !=
          std::string::npos);
    const Loaded many = read_text(small(), {"workers.hosts=20"});
    CHECK(many.scenario.workers.hosts == 8);
    CHECK(many.notes.size() == 1);
}

TEST_CASE("staleness rules: names, parameters, expressions") {
    const auto rule = [](const std::string& text) {
        return read_text(small(), {"optimizer.staleness_rule=" + text}).scenario.optimizer.staleness_rule;
    };
    CHECK(rule("inverse-n").kind == StalenessRule::Kind::inverse_n);
    CHECK(rule("{\"name\":\"polynomial\",\"exponent\":2}").exponent == 2);
    CHECK(rule("{\"name\":\"sqrt-batch\",\"reference_batch\":256}").reference_batch == 256);
    CHECK(rule("sqrt-batch").reference_batch == 128);
    RuleInfo info;
    info.staleness = 3;
    CHECK(rule("{\"expression\":\"1/(1+staleness)^a\",\"a\":0.5}").gradient_factor(info) == 0.5);
    CHECK(rule("{\"expression\":\"n\"}") == rule("{\"expression\":\"n\"}"));
    CHECK_FALSE(rule("{\"expression\":\"a\",\"a\":1}") == rule("{\"expression\":\"a\",\"a\":2}"));
    CHECK(error_of(small(), {"optimizer.staleness_rule={\"name\":\"inverse-n\",\"exponent\":1}"})
              .find("goes with name \"polynomial\"") != std::string::npos);
    CHECK(error_of(small(), {"optimizer.staleness_rule={\"exponent\":1}"})
              .find("expected a name, an object with \"name\" or an object with \"expression\"") != std::string::npos);
    CHECK(error_of(small(), {"optimizer.staleness_rule={\"expression\":\"1/(1+stalenes)\"}"})
              .find("character 6: \"stalenes\" is neither a variable nor a constant of the rule; did you mean "
                    "\"staleness\"?") != std::string::npos);
}

TEST_CASE("the resolved text gives the same scenario again, and its hash") {
    const std::string texts[] = {
        small(),
        learning("\"data\": {\"validation\": 0.1, \"samples\": 500}, \"comment\": \"c\", \"stop\": {\"epochs\": 1.5, "
                 "\"target\": "
                 "{\"at_most\": 0.1}}"),
        small("\"optimizer\": {\"staleness_rule\": {\"expression\": \"1/(1+staleness)^a\", \"a\": 0.1}}, \"trace\": "
              "{\"gradients\": "
              "{\"every\": 10}}"),
        small("\"cluster\": {\"platform\": \"p.xml\", \"devices\": {\"default\": {\"seconds\": {\"32\": \"9ms\", "
              "\"8\": 0.03}}}}"),
        small("\"cluster\": {\"network\": {\"concurrent_transfers\": null, \"star\": {\"bandwidth\": \"1Gbps\"}}}"),
    };
    for (const auto& text : texts) {
        const Loaded first = read_text(text);
        const Loaded second = read_text(first.resolved_json);
        CHECK(first.resolved_json == second.resolved_json);
        CHECK(hash8(first) == hash8(second));
        CHECK(second.notes.empty());
        CHECK(same_value(first.tree, second.tree));
    }
    CHECK(hash8(read_text(small())) != hash8(read_text(small(), {"seed=2"})));
    CHECK(hash8(read_text(small())) == hash8(read_text(small("\"comment\": \"other\""))));
    CHECK(hash8(read_text(small())).size() == 8);
    // The order of keys is no difference.
    CHECK(hash8(read_text(small("\"seed\": 2, \"trace\": {\"updates\": true, \"events\": true}"))) ==
          hash8(read_text(small("\"trace\": {\"events\": true, \"updates\": true}, \"seed\": 2"))));
}

TEST_CASE("a rule that fails at the first gradient is refused when the scenario is read") {
    const std::string message = error_of(small(), {"optimizer.staleness_rule={\"expression\":\"1/staleness\"}"});
    CHECK(message.find("optimizer.staleness_rule: staleness rule \"1/staleness\" gives inf") != std::string::npos);
}
