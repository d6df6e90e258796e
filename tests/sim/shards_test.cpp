// Training with sharded servers, held against one server.
#include "core/shards.hpp"
#include "sim/recorded_steps.hpp"
#include "sim/replay/verification.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

Scenario training(const std::string& protocol, int lambda, int batch_size, const std::string& optimizer) {
    Scenario scenario = learning_scenario(protocol, lambda, batch_size);
    scenario.optimizer.name = optimizer;
    scenario.optimizer.momentum = 0.9;
    scenario.optimizer.schedule = {{1, 0.5}};
    scenario.stop.epochs = 2;
    scenario.pool_threads = 2;
    return scenario;
}

Scenario sharded(Scenario scenario, int shards, bool by_layers) {
    scenario.topology = "sharded";
    scenario.shards = {shards, by_layers, false};
    scenario.layers = learn::task_size(scenario).layers;
    return scenario;
}

}  // namespace

// 121 samples, batches of 10, 3 workers: the last round of an epoch has idle workers.
TEST_CASE("hardsync over shards gives bitwise the weights of one server, whatever the optimizer") {
    for (const char* optimizer : {"sgd", "momentum", "nesterov", "adagrad", "adam"})
        for (const int lambda : {1, 3, 5})
            for (const bool by_layers : {false, true}) {
                const auto star = training("hardsync", lambda, 10, optimizer);
                const auto task = learn::make_task(star);
                const auto one = simulate(star, task->samples(), {}, task.get());
                for (const int shards : {1, 2, 5}) {
                    auto scenario = sharded(star, shards, by_layers);
                    CAPTURE(optimizer);
                    CAPTURE(lambda);
                    CAPTURE(shards);
                    CAPTURE(by_layers);
                    const auto run = simulate(scenario, task->samples(), {1e-4, 1e7, 2, 7}, task.get());
                    REQUIRE(run.report.status == Status::finished);
                    CHECK(run.report.weights_hash == one.report.weights_hash);
                    REQUIRE_NOTHROW(check_shard_books(scenario, task->samples(), run.ledger, run.started,
                                                      make_shards(scenario, task->parameters()).used()));
                    scenario.protocol.name = "bsp";
                    CHECK(simulate(scenario, task->samples(), {}, task.get()).report.weights_hash ==
                          one.report.weights_hash);
                }
            }
}

// With one worker there is one order.
TEST_CASE("any protocol with one worker trains as with one server, bit for bit, and evaluates the same") {
    for (const char* protocol : {"n-softsync", "async", "asp", "ssp"}) {
        auto star = training(protocol, 1, 16, "momentum");
        star.evaluate.every_epochs = 0.5;
        const auto task = learn::make_task(star);
        const auto one = simulate(star, task->samples(), {}, task.get());
        const auto run = simulate(sharded(star, 3, false), task->samples(), {}, task.get());
        CAPTURE(protocol);
        CHECK(run.report.weights_hash == one.report.weights_hash);
        REQUIRE(run.ledger.evals.size() == one.ledger.evals.size());
        for (std::size_t i = 0; i < run.ledger.evals.size(); ++i) {
            CHECK(run.ledger.evals[i].version == one.ledger.evals[i].version);
            CHECK(run.ledger.evals[i].metrics == one.ledger.evals[i].metrics);
        }
    }
}

// Evaluations take nothing of the modelled cluster, although parts of the model are brought together for them.
TEST_CASE("evaluations of sharded servers change no time") {
    auto scenario = sharded(training("async", 4, 8, "sgd"), 3, false);
    const auto task = learn::make_task(scenario);
    const auto few = simulate(scenario, task->samples(), {1e-5, 1e7, 0, 0}, task.get());
    scenario.evaluate.every_epochs = 0.1;
    const auto many = simulate(scenario, task->samples(), {1e-5, 1e7, 0, 0}, task.get());
    CHECK(many.ledger.evals.size() > few.ledger.evals.size() + 10);
    CHECK(many.ledger.updates == few.ledger.updates);
    CHECK(many.report.weights_hash == few.report.weights_hash);
    CHECK(many.report.servers[1].bytes_out == few.report.servers[1].bytes_out);
}

TEST_CASE("traffic of shards adds up to that of one server, and goes by their parts") {
    auto star = timing_scenario("async", 6, 4);
    star.cost.push_bytes = 1'000'003;
    star.cost.pull_bytes = 2'000'005;
    star.stop.gradients = 200;
    for (const int shards : {1, 3, 8}) {
        auto scenario = star;
        scenario.topology = "sharded";
        scenario.shards = {shards, true, false};
        scenario.layers = {1, 2, 3, 94};
        const auto run = simulate(scenario, 10'000);
        std::int64_t in = 0, pushes = 0;
        for (const auto& server : run.report.servers) in += server.bytes_in;
        for (const auto& row : run.ledger.gradients) pushes += row.outcome != rubato::Outcome::cancelled;
        CAPTURE(shards);
        CHECK(in == pushes * star.cost.push_bytes);
        REQUIRE(run.report.servers.size() == static_cast<std::size_t>(shards));
        if (shards == 3) CHECK(run.report.servers[2].bytes_in == pushes * (1'000'003 - 1'000'003 * 6 / 100));
        if (shards == 8) CHECK(run.report.servers[7].bytes_in == 0);
    }
}

// MXNet: K workers, each of which serves 1/K: what stays on its host takes no link.
TEST_CASE("shards beside the workers: what stays on a host takes no time of a link") {
    auto scenario = timing_scenario("hardsync", 4, 8, 0);
    scenario.cost.push_bytes = scenario.cost.pull_bytes = 4'000'000;
    scenario.topology = "sharded";
    scenario.shards = {4, false, true};
    scenario.stop.updates = 10;
    scenario.workers.groups = {{4, "default", 0}};
    std::int64_t remote = 0, all = 0;
    IdealNetwork network(sim::star_hosts(scenario), 1e-5, 1e9);
    CHECK(network.hosts().size() == 4);
    const auto placement = sim::place(scenario, network.hosts());
    simulate(scenario, 10'000, {}, nullptr, -1, [&](Time, RoleId role, const Event&, const Actions& actions) {
        for (const auto& action : actions.list) {
            const auto* send = std::get_if<Send>(&action);
            if (send == nullptr || !std::holds_alternative<Push>(send->message)) continue;
            all += send->payload.count;
            if (placement.host_of_role[static_cast<std::size_t>(role)] !=
                placement.host_of_role[static_cast<std::size_t>(send->to)])
                remote += send->payload.count;
        }
    });
    CHECK(all == 10 * 4 * 4'000'000);
    CHECK(4 * remote == 3 * all);
}

TEST_CASE("recomputation: runs with shards, whatever the buffers are called and however logs were merged") {
    const ShardsSpec shards{3, true, false};
    for (const char* protocol : {"hardsync", "n-softsync", "async", "ssp"}) {
        const auto run = record(protocol, 4, -1, -1, momentum(), {}, nullptr, &shards);
        REQUIRE(run.report.status == Status::finished);
        CAPTURE(protocol);
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            sim::Verification verification;
            sim::Recomputation recomputation(run.scenario, *run.task, {2, true}, verification);
            const auto steps = seed == 0 ? run.steps : merged_anyhow(Renamed()(run.steps), seed);
            for (const auto& step : steps) recomputation.take(step.now, step.role, step.event, step.actions);
            recomputation.end();
            CHECK(verification.loss_difference() == "");
            CHECK(recomputation.gradients() == run.gradients);
            CHECK(recomputation.outstanding() == 0);
            CHECK(recomputation.weights_hash() == run.report.weights_hash);
        }
    }
}
