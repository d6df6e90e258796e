// The swarm: a seed draws the whole configuration; whatever it draws, the books must balance and the run must end.
// RUBATO_SWARM_SEED repeats one seed; RUBATO_SWARM_RUNS sets how many are drawn.
#include "support/oracle.hpp"
#include "support/simulate.hpp"
#include "swarm/draw.hpp"
#include "swarm/seeds.hpp"

#include <doctest/doctest.h>
#include <cstdlib>

using namespace rubato;
using namespace rubato::test;

namespace {

void check(const Draw& it) {
    const auto run = simulate(it.scenario, it.samples, it.network);
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    check_books(it.scenario, it.samples, run.ledger, run.started);
    const bool pulls = it.scenario.workers.communication.pull_every == 1;
    if (it.scenario.protocol.name != "hardsync" && pulls) check_conservation(it.scenario, run.ledger);
    std::map<Version, int> pushes;
    for (const auto& row : run.ledger.gradients) {
        if (row.outcome != rubato::Outcome::applied) continue;
        ++pushes[row.apply_version];
        if (it.scenario.protocol.name == "hardsync" && pulls)
            demand(row.staleness() == 0, "hardsync applied a stale gradient");
    }
    const auto c = gradients_per_update(it.scenario.protocol, it.scenario.lambda());
    for (const auto& row : run.ledger.updates) {
        const int parts = pushes[row.version - 1];
        if (it.scenario.protocol.name == "async") demand(parts == 1, "async takes one push an update");
        if (it.scenario.protocol.name == "n-softsync") demand(parts == c, "an update without c pushes");
    }
    demand(static_cast<int>(run.ledger.workers.size()) == it.scenario.lambda(), "a worker kept no books");
    for (const auto& row : run.ledger.workers)
        demand(row.pulls <= row.inquiries || !row.inquiries, "pulls > inquiries");
}

}  // namespace

TEST_CASE("swarm: the books balance and the run ends, whatever the seed draws") {
    for_seeds(2000, [](std::uint64_t seed) { check(draw(seed)); });
}

TEST_CASE("swarm: each sample once an epoch under shared-epoch, and under strided and sharded with a barrier") {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        auto it = draw(seed);
        it.scenario.stop = {};
        it.scenario.stop.epochs = 3;
        if (it.scenario.data.sampling == Sampling::random) continue;
        if (it.scenario.data.sampling != Sampling::shared_epoch) it.scenario.protocol.name = "hardsync";
        CAPTURE(seed);
        const auto run = simulate(it.scenario, it.samples, it.network);
        std::map<std::pair<std::int32_t, std::int64_t>, int> times;
        for (const auto& row : run.ledger.gradients) {
            std::int64_t base = 0;
            if (it.scenario.data.sampling == Sampling::sharded)
                for (int w = 0; w < row.worker; ++w) base += shard_samples(it.samples, it.scenario.lambda(), w);
            for (std::int64_t i = 0; i < row.batch.count; ++i) ++times[{row.batch.epoch, base + row.batch.first + i}];
        }
        CHECK(static_cast<std::int64_t>(times.size()) == 3 * it.samples);
        for (const auto& [position, count] : times) REQUIRE(count == 1);
    }
}

TEST_CASE("the naive oracle agrees row for row where nothing is shared and the server takes no time") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        learn::Stream random(seed, 1, learn::Purpose::synthetic, 0);
        const int lambda = 1 + static_cast<int>(random.below(20));
        auto scenario = timing_scenario("n-softsync", lambda, 8, 0.05 + 0.4 * random.uniform());
        scenario.protocol.n = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(lambda)));
        scenario.seeds.timing = seed;
        scenario.stop.gradients = 600;
        const NetworkShape shape{1e-4 * random.uniform(), 1e7 + 1e9 * random.uniform(), 0, 0};
        const auto run = simulate(scenario, 1000, shape);

        OracleInput input;
        input.lambda = lambda;
        input.gradients_per_update = gradients_per_update(scenario.protocol, lambda);
        input.control_s = shape.latency_s;
        input.push_s = shape.latency_s + static_cast<double>(scenario.cost.push_bytes) / shape.bandwidth;
        input.pull_s = shape.latency_s + static_cast<double>(scenario.cost.pull_bytes) / shape.bandwidth;
        input.gradients = 600;
        input.compute = [&](int worker, std::int64_t seq) {
            return 8e-3 * sim::noise_factor(scenario, worker + 1, seq);
        };
        std::vector<OracleRow> rows;
        for (const auto& row : run.ledger.gradients)
            if (row.outcome == rubato::Outcome::applied)
                rows.push_back({row.worker, row.worker_seq, row.read_version, row.apply_version});
        CAPTURE(seed);
        REQUIRE(rows == softsync_oracle(input));
    }
}

TEST_CASE("swarm: a run that is interrupted at any step ends in order, with every gradient in the books") {
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        const auto it = draw(seed);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, static_cast<std::int64_t>(seed));
        auto scenario = it.scenario;
        scenario.stop = {};
        REQUIRE_NOTHROW(check_books(scenario, it.samples, run.ledger, run.started));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
    }
}

TEST_CASE("swarm: a run that a failed transfer ends says so, with every gradient in the books") {
    int lost = 0;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        auto it = draw(seed);
        it.network.fails_after = static_cast<std::int64_t>(seed % 97);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network);
        auto scenario = it.scenario;
        scenario.stop = {};
        REQUIRE_NOTHROW(check_books(scenario, it.samples, run.ledger, run.started));
        REQUIRE(static_cast<int>(run.ledger.workers.size()) == scenario.lambda());
        if (run.report.status == Status::finished) continue;
        REQUIRE(run.report.status == Status::peer_lost);
        REQUIRE(run.report.detail.find("failed: a host or link of its route is off") != std::string::npos);
        ++lost;
    }
    CHECK(lost > 100);
}

TEST_CASE("swarm: with pauses nothing is in flight while the weights are evaluated, and the run goes on after it") {
    std::size_t evaluations = 0;
    for (std::uint64_t seed = 1; seed <= 400; ++seed) {
        auto it = draw(seed);
        INFO("seed ", seed);
        auto& scenario = it.scenario;
        const auto task = pause_to_evaluate(it, 0.1 + 0.2 * static_cast<double>(seed % 7));
        const auto run = simulate(scenario, it.samples, it.network, task.get());
        demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
        REQUIRE_NOTHROW(check_books(scenario, it.samples, run.ledger, run.started));
        // The last one is taken while the run ends.
        for (std::size_t i = 0; i + 1 < run.ledger.evals.size(); ++i) {
            ++evaluations;
            const Time at = run.ledger.evals[i].time_ns;
            for (const auto& row : run.ledger.gradients)
                if (row.applied_ns >= 0) REQUIRE_FALSE((row.begin_ns < at && row.push_ns >= at));
        }
    }
    CHECK(evaluations > 1000);
}
