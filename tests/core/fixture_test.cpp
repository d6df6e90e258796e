// Text fixtures of the engine: prose, a command, `----`, what happens. RUBATO_REWRITE=1 writes what happens into the
// files and reports the test as skipped; RUBATO_FIXTURES names another folder than our own. Each one ends with `rest`,
// which lets all computations end and proves that the cluster then comes to rest with every buffer released; where
// there is a cluster.
#include "core/plugin.hpp"
#include "support/toy_cluster.hpp"
#include "trace/plugin.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

using namespace rubato;
using namespace rubato::test;

namespace {

using Arguments = std::map<std::string, std::string>;

/// Keys of single protocols; whether it is one.
bool set_protocol(ProtocolSpec& protocol, const std::string& key, const std::string& value) {
    DsspSpec& dssp = protocol.dssp;
    if (key == "update")
        protocol.per_gradient = value == "per-gradient";
    else if (key == "bound")
        protocol.bound = value == "none" ? std::nullopt : std::optional(std::stoll(value));
    else if (key == "lower")
        dssp.lower_bound = std::stoll(value);
    else if (key == "r_max")
        dssp.r_max = std::stoll(value);
    else if (key == "mode")
        dssp.mode = value == "literal_next"   ? DsspSpec::Mode::literal_next
                    : value == "literal_full" ? DsspSpec::Mode::literal_full
                                              : DsspSpec::Mode::strict;
    else if (key == "table")
        dssp.table_on_every_push = value == "every-push";
    else if (key == "intervals")
        dssp.intervals_with_waits = value == "with-waits";
    else if (key == "grants")
        dssp.exact_grants = value == "exact";
    else if (key == "first_intervals")
        dssp.intervals_from_start = value == "from-start";
    else if (key == "leftover_grants")
        dssp.keep_grants = value == "keep";
    else if (key == "k")
        protocol.k = std::stoll(value);
    else if (key == "dependency")
        protocol.single_dependency = value == "single";
    else if (key == "backups")
        protocol.backups = std::stoi(value);
    else if (key == "per_update")
        protocol.gradients_per_update = std::stoi(value);
    else if (key == "threshold")
        protocol.delay_threshold = std::stoll(value);
    else if (key == "cancel")
        protocol.cancel = value == "true";
    else if (key == "tau")
        protocol.averaging.tau = std::stoi(value);
    else if (key == "exchange")
        protocol.averaging.gradients = value == "gradients";
    else if (key == "alpha")
        protocol.averaging.alpha = std::stod(value);
    else if (key == "outer_rate")
        protocol.averaging.outer_learning_rate = std::stod(value);
    else if (key == "outer_momentum")
        protocol.averaging.outer_momentum = std::stod(value);
    else if (key == "admit")
        protocol.admit = value == "pace" ? Admit::pace : value == "discard" ? Admit::discard : Admit::withhold;
    else
        return false;
    return true;
}

class PluginRule : public Expression {
public:
    explicit PluginRule(std::function<double(const RuleInfo&)> rule) : rule_(std::move(rule)) {}
    double operator()(const RuleInfo& info) const override { return rule_(info); }
    std::string_view text() const override { return "plugin"; }

private:
    std::function<double(const RuleInfo&)> rule_;
};

/// Of what is written policy.NAME=NUMBER or rule.NAME=NUMBER.
Constants constants_of(const Arguments& arguments, const std::string& prefix) {
    Constants constants;
    for (const auto& [key, value] : arguments)
        if (key.starts_with(prefix)) constants.set(key.substr(prefix.size()), std::stod(value));
    return constants;
}

/// What is loaded from files, which lie beside the folder of fixtures.
void load_plugins(Scenario& scenario, const Arguments& arguments, const std::filesystem::path& folder) {
    if (const auto file = arguments.find("policy_file"); file != arguments.end()) {
        scenario.protocol.name = PluginPolicy::name;
        scenario.protocol.plugin = trace::load_policy(folder / file->second, constants_of(arguments, "policy."));
    }
    if (const auto file = arguments.find("rule_file"); file != arguments.end()) {
        auto& rule = scenario.optimizer.staleness_rule;
        rule.kind = StalenessRule::Kind::expression;
        rule.expression = std::make_shared<const PluginRule>(
            trace::load_rule(folder / file->second, constants_of(arguments, "rule.")));
    }
}

bool of_plugin(const std::string& key) {
    return key.starts_with("policy_file") || key.starts_with("rule_file") || key.starts_with("policy.") ||
           key.starts_with("rule.");
}

Scenario scenario_of(const Arguments& arguments) {
    Scenario scenario;
    scenario.evaluate.at_end = false;
    scenario.optimizer.learning_rate = 1;
    scenario.workers.batch_size = 10;
    for (const auto& [key, value] : arguments) {
        if (key == "policy")
            scenario.protocol.name = value;
        else if (key == "workers")
            scenario.workers.groups = {{std::stoi(value), "default", 0}};
        else if (key == "fan_out") {
            if (scenario.topology == "star") scenario.topology = "tree";
            scenario.tree.fan_out = std::stoi(value);
        } else if (key == "weights") {
            scenario.tree.broadcast = value == "broadcast";
        } else if (key == "weights_fan_out") {
            scenario.topology = "tree-downcast";
            scenario.tree.weights_fan_out = std::stoi(value);
        } else if (key == "shards") {
            scenario.topology = "sharded";
            scenario.shards.count = std::stoi(value);
        } else if (key == "layers") {
            std::istringstream sizes(value);
            for (std::string size; std::getline(sizes, size, ',');) scenario.layers.push_back(std::stoll(size));
        } else if (key == "n")
            scenario.protocol.n = std::stoi(value);
        else if (key == "batch")
            scenario.workers.batch_size = std::stoi(value);
        else if (key == "pull") {
            scenario.workers.pipeline = Pipeline::overlap;
            scenario.workers.pull = value == "latest" ? Pull::latest : Pull::prefetch;
        } else if (key == "push_every")
            scenario.workers.communication.push_every = std::stoi(value);
        else if (key == "pull_every")
            scenario.workers.communication.pull_every = std::stoi(value);
        else if (key == "local_rate")
            scenario.workers.communication.local_learning_rate = std::stod(value);
        else if (key == "epochs")
            scenario.stop.epochs = std::stod(value);
        else if (key == "updates")
            scenario.stop.updates = std::stoi(value);
        else if (key == "gradients")
            scenario.stop.gradients = std::stoi(value);
        else if (key == "seconds")
            scenario.stop.seconds = std::stod(value);
        else if (key == "target")
            scenario.stop.target = Target{"valid_error", std::stod(value)};
        else if (key == "evaluate")
            scenario.evaluate.every_epochs = std::stod(value);
        else if (key == "rule")
            scenario.optimizer.staleness_rule.kind = value == "inverse-n" ? StalenessRule::Kind::inverse_n
                                                     : value == "inverse-staleness"
                                                         ? StalenessRule::Kind::inverse_staleness
                                                         : throw std::runtime_error("unknown rule " + value);
        else if (key == "sampling")
            scenario.data.sampling = value == "strided"   ? Sampling::strided
                                     : value == "sharded" ? Sampling::sharded
                                                          : throw std::runtime_error("unknown sampling " + value);
        else if (key != "samples" && !of_plugin(key) && !set_protocol(scenario.protocol, key, value))
            throw std::runtime_error("unknown key " + key);
    }
    return scenario;
}

/// What the controller of dssp answers where the fast worker has just pushed, and the slowest one `phase` before.
/// interval=none: it has pushed once.
std::string ask_controller(const Arguments& arguments) {
    const auto time = [&](const std::string& key) {
        const auto& value = arguments.at(key);
        return value == "none" ? Time{-1} : static_cast<Time>(std::llround(std::stod(value) * 1e9));
    };
    const auto r_max = std::stoll(arguments.at("r_max"));
    const auto ties = arguments.find("ties");
    const Time now = 1'000'000'000'000;
    const auto found = synchronize({now, time("I_p")}, {now - time("phase"), time("I_s")}, r_max, r_max,
                                   ties == arguments.end() || ties->second == "smallest");
    if (found.fast_ns < 0) return "r* = 0: nothing can be predicted\n";
    const auto after = [&](Time it) { return static_cast<double>(it - now) * 1e-9; };
    return fmt::format("r* = {}: pushes after {:.6g} s and {:.6g} s\n", found.r, after(found.fast_ns),
                       after(found.slow_ns));
}

std::string perform(std::unique_ptr<ToyCluster>& cluster, const std::string& line,
                    const std::filesystem::path& folder) {
    std::istringstream words(line);
    std::string command, word;
    words >> command;
    Arguments arguments;
    while (words >> word) arguments[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    if (command == "cluster") {
        Scenario scenario = scenario_of(arguments);
        load_plugins(scenario, arguments, folder);
        cluster = std::make_unique<ToyCluster>(scenario, std::stoll(arguments["samples"]));
        return cluster->settle();
    }
    if (command == "controller") return ask_controller(arguments);
    if (arguments.count("at")) cluster->set_time(static_cast<Time>(std::llround(std::stod(arguments["at"]) * 1e9)));
    if (command == "crash") {
        const auto gradient = arguments.find("gradient");
        if (gradient != arguments.end() && gradient->second != "on-its-way")
            throw std::runtime_error("expected gradient=on-its-way");
        cluster->crash(std::stoi(arguments.at("worker")), gradient != arguments.end());
        return cluster->settle();
    }
    if (command == "return") {
        cluster->come_back(std::stoi(arguments.at("worker")));
        return cluster->settle();
    }
    if (command == "compute") {
        cluster->compute(std::stoi(arguments.at("worker")),
                         arguments.count("loss") ? std::stod(arguments["loss"]) : 1.0);
        return cluster->settle();
    }
    if (command == "timer") {
        cluster->fire_timer();
        return cluster->settle();
    }
    if (command == "waiting") return cluster->waiting(std::stoi(arguments.at("role"))) + "\n";
    if (command == "rest") {
        std::string story;
        for (int round = 0; round < 1000 && !cluster->finished(); ++round)
            for (WorkerId worker = 0; worker < 64; ++worker)
                if (cluster->computing(worker)) cluster->compute(worker, 1), story += cluster->settle();
        if (!cluster->finished()) return story + "it does not come to rest\n";
        return story + fmt::format("at rest, {} references left\n", cluster->references());
    }
    throw std::runtime_error("unknown command: " + line);
}

/// Returns what the file should say.
std::string run_fixture(const std::string& text, const std::filesystem::path& path) {
    const std::string file = path.filename();
    std::istringstream in(text);
    std::string line, out;
    std::unique_ptr<ToyCluster> cluster;
    for (int number = 1; std::getline(in, line); ++number) {
        out += line + "\n";
        if (line.empty() || line[0] == '#') continue;
        std::string separator;
        if (!std::getline(in, separator) || separator != "----")
            throw std::runtime_error(fmt::format("{}:{}: expected ---- after a command", file, number + 1));
        ++number;
        try {
            out += "----\n" + perform(cluster, line, path.parent_path().parent_path());
        } catch (const std::exception& error) {
            throw std::runtime_error(fmt::format("{}:{}: {}", file, number - 1, error.what()));
        }
        while (std::getline(in, line) && !line.empty()) ++number;
        ++number;
        out += "\n";
    }
    return out;
}

}  // namespace

TEST_CASE("fixtures") {
    const bool rewrite = std::getenv("RUBATO_REWRITE") != nullptr;
    const char* other = std::getenv("RUBATO_FIXTURES");
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(other ? other : RUBATO_FIXTURES)) {
        std::ifstream in(entry.path());
        std::stringstream content;
        content << in.rdbuf();
        const auto name = entry.path().filename().string();
        CAPTURE(name);
        const auto story = run_fixture(content.str(), entry.path());
        if (rewrite)
            std::ofstream(entry.path()) << story;
        else
            CHECK(story == content.str());
        if (story.find("\ncluster ") != std::string::npos)
            CHECK(story.find("at rest, 0 references left") != std::string::npos);
        ++files;
    }
    CHECK(files >= (other ? 1 : 8));
    if (rewrite) std::exit(77);
}
