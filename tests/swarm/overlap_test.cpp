// Overlapping workers over scenarios that a seed draws: what docs/protocols.md promises of pipelines.
#include "support/simulate.hpp"
#include "swarm/parts.hpp"
#include "swarm/pipeline_checker.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

Draw draw_overlap(std::uint64_t seed) {
    Draw it = draw(seed);
    auto& scenario = it.scenario;
    if (scenario.protocol.name == "hardsync") scenario.protocol.name = seed % 2 == 0 ? "async" : "n-softsync";
    auto& workers = scenario.workers;
    workers.communication = {};
    workers.pipeline = Pipeline::overlap;
    workers.pull = seed % 3 == 0 ? Pull::latest : Pull::prefetch;
    if (workers.draw_themselves() && scenario.data.sampling == Sampling::shared_epoch)
        scenario.data.sampling = Sampling::strided;
    return it;
}

void check(const Draw& it) {
    PipelineChecker pipeline(it.scenario);
    const auto run = simulate(
        it.scenario, it.samples, it.network, nullptr, -1,
        [&](Time, RoleId role, const Event& event, const Actions& actions) { pipeline.see(role, event, actions); });
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    pipeline.at_end(run.ledger);
    Scenario scenario = it.scenario;
    if (scenario.workers.draw_themselves()) scenario.stop = {};  // what ends an epoch may reach beyond it
    check_books(scenario, it.samples, run.ledger, run.started);
    const Time end = run.ledger.updates.empty() ? 0 : run.ledger.updates.back().time_ns;
    for (const auto& row : run.ledger.workers) {
        demand(row.hidden_ns <= row.compute_ns, "more was hidden than was computed");
        for (const Time time : {row.compute_ns, row.push_queued_ns, row.push_moving_ns, row.pull_request_ns,
                                row.pull_moving_ns, row.policy_wait_ns, row.apply_wait_ns, row.idle_ns})
            demand(time >= 0, "negative time");
        if (it.scenario.cluster.server.update_s == 0 && it.scenario.cluster.server.push_s == 0 &&
            it.scenario.cluster.server.pull_s == 0)
            demand(row.sum_ns() >= end, "a worker's books miss a part of the run");
        if (it.scenario.workers.draw_themselves())
            demand(
                row.pull_request_ns + row.pull_moving_ns + row.apply_wait_ns <= row.sum_ns() / 1'000'000 + 10'000'000,
                "a worker waited for weights");
    }
}

/// The same with real gradients, whose buffers can be told apart.
void check_learning(std::uint64_t seed) {
    Draw it = draw_overlap(seed);
    const Scenario drawn = it.scenario;
    it.scenario = learning_scenario(drawn.protocol.name, drawn.lambda(), 10);
    it.scenario.protocol = drawn.protocol;
    it.scenario.workers.pipeline = drawn.workers.pipeline;
    it.scenario.workers.pull = drawn.workers.pull;
    it.scenario.data.sampling = drawn.data.sampling;
    it.scenario.stop.epochs = 2;
    const auto task = learn::make_task(it.scenario);
    PipelineChecker pipeline(it.scenario);
    const auto run = simulate(
        it.scenario, it.scenario.data.samples, it.network, task.get(), -1,
        [&](Time, RoleId role, const Event& event, const Actions& actions) { pipeline.see(role, event, actions); });
    pipeline.at_end(run.ledger);
    if (it.scenario.workers.draw_themselves()) it.scenario.stop = {};
    check_books(it.scenario, it.scenario.data.samples, run.ledger, run.started);
}

/// Mean staleness of the second half of a run.
double steady_staleness(const Ledger& ledger) {
    double sum = 0;
    std::int64_t count = 0;
    const auto half = static_cast<Version>(ledger.updates.size() / 2);
    for (const auto& row : ledger.gradients)
        if (row.outcome == Outcome::applied && row.apply_version >= half)
            sum += static_cast<double>(row.staleness()), ++count;
    return sum / static_cast<double>(count);
}

}  // namespace

TEST_CASE("overlap: one push and one pull at a time, nothing lost, whatever the seed draws") {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
        INFO("seed ", seed);
        REQUIRE_NOTHROW(check(draw_overlap(seed)));
    }
}

TEST_CASE("overlap: the weights of a gradient are not let go while it is computed") {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        INFO("seed ", seed);
        REQUIRE_NOTHROW(check_learning(seed));
    }
}

TEST_CASE("overlap: staleness of prefetch is 2 with one worker, and 2 lambda on average with short transfers") {
    for (const int lambda : {1, 2, 4, 8}) {
        auto scenario = timing_scenario("async", lambda, 8, lambda == 1 ? 0 : 0.2);
        scenario.workers.pipeline = Pipeline::overlap;
        scenario.stop.gradients = 8000;
        const auto run = simulate(scenario, 100000, {1e-6, 1e12, 0, 0});
        CAPTURE(lambda);
        CHECK(steady_staleness(run.ledger) == doctest::Approx(2 * lambda).epsilon(0.02));
        if (lambda > 1) continue;
        for (const auto& row : run.ledger.gradients)
            if (row.outcome == Outcome::applied && row.apply_version >= 2) CHECK(row.staleness() == 2);
    }
}

TEST_CASE("overlap: a worker stalls for what a push takes beyond a computation, and for nothing else") {
    for (const double push_s : {1e-3, 7e-3, 8e-3, 9e-3, 30e-3}) {
        auto scenario = timing_scenario("async", 1, 8, 0);  // 8 ms a gradient
        scenario.workers.pipeline = Pipeline::overlap;
        scenario.workers.pull = Pull::latest;
        scenario.data.sampling = Sampling::random;
        scenario.stop.gradients = 200;
        scenario.cost.push_bytes = static_cast<std::int64_t>(push_s * 1e9);
        scenario.cost.pull_bytes = 100;
        const auto run = simulate(scenario, 1000, {0, 1e9, 0, 0});
        const auto& row = run.ledger.workers.front();
        CAPTURE(push_s);
        const double stall_s = 1e-9 * static_cast<double>(row.push_queued_ns + row.push_moving_ns);
        CHECK(stall_s == doctest::Approx(199 * std::max(0.0, push_s - 8e-3)).epsilon(0.02));
        CHECK(row.apply_wait_ns + row.policy_wait_ns + row.pull_request_ns == 0);
        const double interval_s = 1e-9 * static_cast<double>(run.ledger.updates.back().time_ns) / 200;
        CHECK(interval_s == doctest::Approx(std::max(8e-3, push_s)).epsilon(0.02));
    }
}

TEST_CASE("overlap: a run that is interrupted at any step ends in order, with every gradient in the books") {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        const auto it = draw_overlap(seed);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, static_cast<std::int64_t>(seed));
        auto scenario = it.scenario;
        scenario.stop = {};
        REQUIRE_NOTHROW(check_books(scenario, it.samples, run.ledger, run.started));
    }
}

TEST_CASE("overlap: the books of a run that goes on from a checkpoint balance as those of one run") {
    int resumed = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        INFO("seed ", seed);
        Draw it = draw_overlap(seed);
        it.scenario.checkpoint.every_updates = 1 + static_cast<std::int64_t>(seed % 23);
        const bool signal = seed % 4 == 0;
        const TemporaryDirectory folder;
        const auto first =
            run_part(it, nullptr, folder.path(), nullptr, signal ? static_cast<std::int64_t>(3 * seed) : -1);
        const auto from = newest(folder.path());
        if (!from) continue;
        ++resumed;
        const auto rest = run_part(it, nullptr, folder.path(), &*from);
        REQUIRE(rest.report.status == Status::finished);
        const auto whole = joined(first.at_save.at(from->head.roles.server.version), rest.ledger);
        Scenario scenario = it.scenario;
        if (scenario.workers.draw_themselves()) scenario.stop = {};
        REQUIRE_NOTHROW(check_books(scenario, it.samples, whole, whole.told()));
        // Whoever goes on computes the very batches that it would have computed.
        if (!scenario.workers.draw_themselves()) continue;
        DealerConfig data{scenario.data.sampling, it.samples, scenario.workers.batch_size, scenario.lambda()};
        for (const auto& row : whole.gradients) REQUIRE(row.batch == own_batch(data, row.worker, row.worker_seq));
    }
    CHECK(resumed > 60);
}

TEST_CASE("overlap: a run whose transfer fails, or whose workers crash, has every gradient in the books") {
    int lost = 0, crashed = 0;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        auto it = draw_overlap(seed);
        INFO("seed ", seed);
        if (seed % 2 == 0) {
            it.network.fails_after = static_cast<std::int64_t>(seed % 97);
        } else {
            auto& fault = it.scenario.faults.emplace_back();
            fault.workers = {static_cast<WorkerId>(seed % static_cast<std::uint64_t>(it.scenario.lambda()))};
            fault.every_s = 0.05;
            fault.for_s = 0.01;
        }
        const auto run = simulate(it.scenario, it.samples, it.network);
        auto scenario = it.scenario;
        if (scenario.workers.draw_themselves() || run.report.status != Status::finished) scenario.stop = {};
        REQUIRE_NOTHROW(check_books(scenario, it.samples, run.ledger, run.started));
        if (run.report.status == Status::peer_lost) ++lost;
        if (run.ledger.count(Outcome::cancelled) > it.scenario.lambda()) ++crashed;
    }
    CHECK(lost > 100);
    CHECK(crashed > 20);
}
