// Overlapping workers in trees of servers, and weights that go down a tree of workers (Rudra-adv*), over random
// clusters. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/draw.hpp"
#include "swarm/pipeline_checker.hpp"
#include "swarm/seeds.hpp"
#include "swarm/tree_checker.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

Draw draw_downcast(std::uint64_t seed) {
    Draw it = draw(seed);
    learn::Stream random(seed, 3, learn::Purpose::synthetic, 0);
    const auto pick = [&](std::uint64_t low, std::uint64_t high) {
        return static_cast<int>(low + random.below(high - low + 1));
    };
    auto& scenario = it.scenario;
    const int lambda = pick(1, 24);
    scenario.workers.groups = {{lambda, "default", pick(1, 4)}};
    scenario.workers.communication = {};
    scenario.workers.pipeline = Pipeline::overlap;
    scenario.protocol.name = pick(0, 2) == 0 ? "async" : "n-softsync";
    scenario.protocol.n = pick(1, static_cast<std::uint64_t>(lambda));
    scenario.topology = pick(0, 3) == 0 ? "tree" : "tree-downcast";
    scenario.tree.fan_out = pick(2, 6);
    scenario.trace.gradients = pick(0, 2) > 0;
    scenario.tree.weights_fan_out = pick(1, 4);
    scenario.tree.leaves_by_host = pick(0, 1) == 1;
    const bool downcast = scenario.topology == "tree-downcast";
    scenario.tree.broadcast = !downcast && pick(0, 1) == 1;
    scenario.workers.pull = downcast || pick(0, 1) == 1 ? Pull::latest : Pull::prefetch;
    if (scenario.workers.draw_themselves() && scenario.data.sampling == Sampling::shared_epoch)
        scenario.data.sampling = pick(0, 1) == 1 ? Sampling::strided : Sampling::random;
    return it;
}

struct Watched {
    TreeChecker tree;
    PipelineChecker pipeline;
    explicit Watched(const Scenario& scenario) : tree(scenario), pipeline(scenario) {}
    auto watch() {
        return [this](Time, RoleId role, const Event& event, const Actions& actions) {
            tree.see(role, event, actions);
            pipeline.see(role, event, actions);
        };
    }
};

void check(const Draw& it) {
    Watched watched(it.scenario);
    const auto run = simulate(it.scenario, it.samples, it.network, nullptr, -1, watched.watch());
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    watched.tree.at_end();
    watched.pipeline.at_end(run.ledger);
    auto scenario = it.scenario;
    if (scenario.workers.draw_themselves()) scenario.stop = {};  // what ends an epoch may reach beyond it
    check_books(scenario, it.samples, run.ledger, run.started);
    if (scenario.topology != "tree-downcast") return;
    for (const auto& row : run.ledger.workers)
        demand(row.inquiries == 0 && row.pull_request_ns + row.pull_moving_ns + row.apply_wait_ns == 0,
               "a worker asked, or waited, for weights that come unasked");
    const DealerConfig data{scenario.data.sampling, it.samples, scenario.workers.batch_size, scenario.lambda()};
    for (const auto& row : run.ledger.gradients)
        demand(!scenario.trace.gradients || row.batch == own_batch(data, row.worker, row.worker_seq),
               "a worker computed on another's batch");
}

/// 1-softsync of 54 workers with 8 leaves, where a gradient takes as long as about three transfers.
double mean_staleness(const char* topology) {
    auto scenario = timing_scenario("n-softsync", 54, 8, 0.1);
    scenario.workers.hosts = 8;
    scenario.topology = topology;
    scenario.tree.leaves_by_host = true;
    scenario.data.sampling = Sampling::random;
    if (scenario.topology == "tree-downcast") {
        scenario.workers.pipeline = Pipeline::overlap;
        scenario.workers.pull = Pull::latest;
    }
    scenario.cost.push_bytes = scenario.cost.pull_bytes = 3'000'000;
    scenario.stop.updates = 200;
    const auto run = simulate(scenario, 100'000, {1e-6, 1e9, 0, 0});
    double sum = 0, count = 0;
    for (const auto& row : run.ledger.gradients)
        if (row.outcome == Outcome::applied) sum += static_cast<double>(row.staleness()), ++count;
    return sum / count;
}

}  // namespace

TEST_CASE("downcast: the books balance and the run ends, whatever the seed draws") {
    for_seeds(3000, [](std::uint64_t seed) { check(draw_downcast(seed)); });
}

TEST_CASE("downcast: a run that a signal or a failed transfer ends has every gradient in the books") {
    int lost = 0;
    for (std::uint64_t seed = 1; seed <= 800; ++seed) {
        auto it = draw_downcast(seed);
        INFO("seed ", seed);
        if (seed % 2 == 0) it.network.fails_after = static_cast<std::int64_t>(seed % 97);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr,
                                  seed % 2 == 1 ? static_cast<std::int64_t>(seed) : -1);
        auto scenario = it.scenario;
        scenario.stop = {};
        REQUIRE_NOTHROW(check_books(scenario, it.samples, run.ledger, run.started));
        lost += run.report.status == Status::peer_lost;
    }
    CHECK(lost > 60);
}

// INV-B5 of the paper's model.
TEST_CASE("downcast: gradients are staler than in a tree whose workers wait for their pushes and weights") {
    const double waiting = mean_staleness("tree"), running = mean_staleness("tree-downcast");
    MESSAGE("tree " << waiting << ", tree-downcast " << running);
    CHECK(running > 1.1 * waiting);
}
