// Simulations whose gradients and updates several threads compute: held against one thread, bit for bit. The thread
// sanitizer watches these, too.
#include "support/optimizers.hpp"
#include "support/simulate.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace rubato;
using namespace rubato::test;

namespace {

/// Wide enough for an update to be shared among threads.
Scenario training(const std::string& protocol, int lambda) {
    Scenario scenario = learning_scenario(protocol, lambda, 4, "mlp", 60);
    scenario.data.shape = {28, 28, 1};
    scenario.model.hidden = {40};
    scenario.evaluate.every_epochs = 1;
    scenario.stop.gradients = 60;
    return scenario;
}

void check_threads(Scenario scenario) {
    CAPTURE(scenario.protocol.name);
    CAPTURE(scenario.optimizer.name);
    const auto task = learn::make_task(scenario);
    scenario.pool_threads = 1;
    const auto alone = simulate(scenario, task->samples(), {}, task.get());
    REQUIRE(alone.report.status == Status::finished);
    for (const int threads : {2, 5}) {
        CAPTURE(threads);
        scenario.pool_threads = threads;
        const auto shared = simulate(scenario, task->samples(), {}, task.get());
        REQUIRE(shared.report.status == Status::finished);
        CHECK(*shared.report.weights_hash == *alone.report.weights_hash);
        CHECK(shared.ledger.gradients == alone.ledger.gradients);
        CHECK(shared.ledger.evals == alone.ledger.evals);
    }
}

}  // namespace

TEST_CASE("threads: the result of a protocol does not depend on their number") {
    for (const char* protocol :
         {"hardsync", "n-softsync", "async", "ssp", "backup-workers", "rennala", "sparknet", "easgd", "delayed"}) {
        auto scenario = training(protocol, 6);
        if (scenario.protocol.averages() || scenario.protocol.reduces()) scenario.data.sampling = Sampling::strided;
        scenario.protocol.n = 2;
        scenario.protocol.bound = 2;
        scenario.protocol.backups = 1;
        check_threads(scenario);
    }
}

TEST_CASE("threads: optimizers with a state, and rules that look at weights") {
    for (const char* name : {"momentum", "nesterov", "adagrad", "adam"}) {
        auto scenario = training("async", 4);
        scenario.optimizer = optimizer_named(name, 0.01);
        check_threads(scenario);
    }
    for (const auto& rule : rules_on_weights()) {
        auto scenario = training("n-softsync", 4);
        scenario.protocol.n = 4;
        scenario.optimizer.staleness_rule = rule;
        check_threads(scenario);
    }
}

TEST_CASE("threads: shards, trees, and fewer workers than threads") {
    auto sharded = training("async", 4);
    sharded.topology = "sharded";
    sharded.shards = {3, false, false};
    check_threads(sharded);
    auto tree = training("n-softsync", 6);
    tree.protocol.n = 2;
    tree.topology = "tree";
    tree.tree.fan_out = 2;
    check_threads(tree);
    check_threads(training("async", 1));
}

TEST_CASE("threads: a run gives out the same buffers each time, whoever of them was first") {
    auto scenario = training("async", 3);
    scenario.cluster.noise.cv = 0.4;
    scenario.stop.gradients.reset();
    scenario.stop.updates = 150;
    FaultSpec& fault = scenario.faults.emplace_back();  // of workers, one of which may hold the present weights alone
    fault.workers = {0, 1, 2};
    fault.every_s = 0.008;
    fault.for_s = 0.0012;
    const auto task = learn::make_task(scenario);
    const auto buffers = [&](int threads) {
        std::vector<BufferId> out;
        scenario.pool_threads = threads;
        const auto watch = [&](Time, RoleId, const Event& event, const Actions&) {
            if (const auto* it = std::get_if<Applied>(&event)) out.push_back(it->weights);
        };
        REQUIRE(simulate(scenario, task->samples(), {}, task.get(), -1, watch).report.status == Status::finished);
        return out;
    };
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        scenario.seeds.timing = seed;
        const auto expected = buffers(1);
        CHECK(expected.size() == 150);
        for (int repeat = 0; repeat < 3; ++repeat)
            for (const int threads : {2, 5}) CHECK(buffers(threads) == expected);
    }
}
