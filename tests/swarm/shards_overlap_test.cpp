// Overlapping workers of sharded servers, over scenarios that a seed draws: what docs/protocols.md promises of both
// together. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/seeds.hpp"
#include "swarm/shards_draw.hpp"
#include "swarm/shards_pipeline_checker.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

Draw draw_overlap(std::uint64_t seed) {
    Draw it = draw_shards(seed);
    auto& scenario = it.scenario;
    scenario.protocol.name = seed % 2 == 0 ? "async" : "n-softsync";
    scenario.workers.pipeline = Pipeline::overlap;
    scenario.workers.pull = seed % 5 < 2 ? Pull::latest : Pull::prefetch;
    if (scenario.workers.draw_themselves() && scenario.data.sampling == Sampling::shared_epoch)
        scenario.data.sampling = Sampling::strided;
    return it;
}

void check_times(const Draw& it, const Ledger& ledger) {
    const auto& server = it.scenario.cluster.server;
    const Time end = ledger.updates.empty() ? 0 : ledger.updates.back().time_ns;
    for (const auto& row : ledger.workers) {
        demand(row.hidden_ns <= row.compute_ns, "more was hidden than was computed");
        for (const Time time : {row.compute_ns, row.push_queued_ns, row.push_moving_ns, row.pull_request_ns,
                                row.pull_moving_ns, row.policy_wait_ns, row.apply_wait_ns, row.idle_ns})
            demand(time >= 0, "negative time");
        if (server.update_s == 0 && server.push_s == 0 && server.pull_s == 0)
            demand(row.sum_ns() >= end, "a worker's books miss a part of the run");
    }
}

Scenario without_stop(Scenario scenario) {
    scenario.stop = {};
    return scenario;
}

void check(const Draw& it) {
    const auto& scenario = it.scenario;
    ShardsPipelineChecker checker(scenario);
    const auto run = simulate(scenario, it.samples, it.network, nullptr, -1,
                              [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                  checker.see(now, role, event, actions);
                              });
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    checker.at_end(run.ledger);
    check_shard_books(scenario.workers.draw_themselves() ? without_stop(scenario) : scenario, it.samples, run.ledger,
                      run.started, make_shards(scenario, 0).used());
    demand(static_cast<int>(run.ledger.workers.size()) == scenario.lambda(), "a worker kept no books");
    check_times(it, run.ledger);
}

/// The same with real gradients, whose buffers can be told apart.
void check_learning(std::uint64_t seed) {
    Draw it = draw_overlap(seed);
    const Scenario drawn = it.scenario;
    it.scenario = learning_scenario(drawn.protocol.name, drawn.lambda(), 10);
    it.scenario.protocol = drawn.protocol;
    it.scenario.topology = drawn.topology;
    it.scenario.shards = drawn.shards;
    it.scenario.shards.by_layers = it.scenario.shards.beside_workers = false;
    it.scenario.workers.pipeline = drawn.workers.pipeline;
    it.scenario.workers.pull = drawn.workers.pull;
    it.scenario.data.sampling = drawn.data.sampling;
    it.scenario.stop.epochs = 2;
    const auto task = learn::make_task(it.scenario);
    ShardsPipelineChecker checker(it.scenario, task->parameters());
    const auto run = simulate(it.scenario, it.scenario.data.samples, it.network, task.get(), -1,
                              [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                  checker.see(now, role, event, actions);
                              });
    checker.at_end(run.ledger);
    check_shard_books(it.scenario.workers.draw_themselves() ? without_stop(it.scenario) : it.scenario,
                      it.scenario.data.samples, run.ledger, run.started,
                      make_shards(it.scenario, task->parameters()).used());
}

}  // namespace

TEST_CASE("shards, overlap: one push and one pull at a time, nothing lost at any shard, whatever the seed draws") {
    for_seeds(2000, [](std::uint64_t seed) { check(draw_overlap(seed)); });
}

TEST_CASE("shards, overlap: weights are neither written nor let go while a gradient is computed on them") {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        INFO("seed ", seed);
        REQUIRE_NOTHROW(check_learning(seed));
    }
}

TEST_CASE("shards, overlap: with one shard it is the pipeline of a star, row for row") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        auto it = draw_overlap(seed);
        INFO("seed ", seed);
        it.scenario.shards = {1, false, false};
        const auto sharded = simulate(it.scenario, it.samples, it.network);
        it.scenario.topology = "star";
        const auto star = simulate(it.scenario, it.samples, it.network);
        REQUIRE(sharded.ledger.gradients == star.ledger.gradients);
        REQUIRE(sharded.ledger.updates == star.ledger.updates);
        REQUIRE(sharded.ledger.workers == star.ledger.workers);
    }
}

TEST_CASE("shards, overlap: a run that is interrupted at any step ends in order, with every gradient in every book") {
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        const auto it = draw_overlap(seed);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, static_cast<std::int64_t>(seed));
        REQUIRE_NOTHROW(check_shard_books(without_stop(it.scenario), it.samples, run.ledger, run.started,
                                          make_shards(it.scenario, 0).used()));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
    }
}

TEST_CASE("shards, overlap: a run that a failed transfer ends says so, with every gradient in every book") {
    int lost = 0;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        auto it = draw_overlap(seed);
        it.network.fails_after = static_cast<std::int64_t>(seed % 97);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network);
        REQUIRE_NOTHROW(check_shard_books(without_stop(it.scenario), it.samples, run.ledger, run.started,
                                          make_shards(it.scenario, 0).used()));
        if (run.report.status == Status::finished) continue;
        REQUIRE(run.report.status == Status::peer_lost);
        ++lost;
    }
    CHECK(lost > 100);
}

TEST_CASE("shards, overlap: with one worker staleness of prefetch is 2 at every shard") {
    for (const int shards : {1, 3, 5}) {
        auto scenario = timing_scenario("async", 1, 8, 0);
        scenario.topology = "sharded";
        scenario.shards.count = shards;
        scenario.workers.pipeline = Pipeline::overlap;
        scenario.stop.gradients = 500;
        const auto run = simulate(scenario, 100000, {1e-6, 1e12, 0, 0});
        CAPTURE(shards);
        std::int64_t checked = 0;
        for (const auto& row : run.ledger.shards)
            if (row.outcome == rubato::Outcome::applied && row.apply_version >= 2) {
                REQUIRE(row.staleness() == 2);
                ++checked;
            }
        CHECK(checked == 498 * shards);
    }
}

TEST_CASE("shards, overlap: a worker stalls for what the slowest shard's push takes beyond a computation") {
    for (const double push_s : {1e-3, 7e-3, 9e-3, 30e-3}) {
        auto scenario = timing_scenario("async", 1, 8, 0);  // 8 ms a gradient
        scenario.topology = "sharded";
        scenario.shards.count = 2;
        scenario.shards.by_layers = true;
        scenario.layers = {99, 1};
        scenario.workers.pipeline = Pipeline::overlap;
        scenario.workers.pull = Pull::latest;
        scenario.data.sampling = Sampling::random;
        scenario.stop.gradients = 200;
        scenario.cost.push_bytes = static_cast<std::int64_t>(push_s * 1e9 / 0.99);
        scenario.cost.pull_bytes = 100;
        const auto run = simulate(scenario, 1000, {0, 1e9, 0, 0});
        const auto& row = run.ledger.workers.front();
        CAPTURE(push_s);
        const double stall_s = 1e-9 * static_cast<double>(row.push_queued_ns + row.push_moving_ns);
        CHECK(stall_s == doctest::Approx(199 * std::max(0.0, push_s - 8e-3)).epsilon(0.02));
        CHECK(row.apply_wait_ns + row.policy_wait_ns + row.pull_request_ns == 0);
    }
}
