// Trees of servers, over random clusters: the books balance and the run ends, whatever is drawn; weights are those of a
// version that the root made, and no gradient is lost on its way. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/draw.hpp"
#include "swarm/seeds.hpp"
#include "swarm/tree_checker.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

const char* const protocols[] = {"n-softsync", "n-softsync", "n-softsync", "hardsync", "bsp",
                                 "async",      "asp",        "ssp",        "dssp",     "bounded-delay",
                                 "rennala",    "ringmaster", "admission"};

Draw draw_tree(std::uint64_t seed) {
    Draw it = draw(seed);
    learn::Stream random(seed, 2, learn::Purpose::synthetic, 0);
    const auto pick = [&](std::uint64_t low, std::uint64_t high) {
        return static_cast<int>(low + random.below(high - low + 1));
    };
    auto& scenario = it.scenario;
    const int lambda = pick(1, 24);
    scenario.workers.groups = {{lambda, "default", pick(1, 4)}};
    scenario.topology = "tree";
    scenario.tree.fan_out = pick(2, 6);
    scenario.trace.gradients = pick(0, 2) > 0;
    scenario.tree.leaves_by_host = pick(0, 1) == 1;
    scenario.tree.broadcast = pick(0, 2) == 0;
    auto& protocol = scenario.protocol;
    protocol.name = protocols[random.below(std::size(protocols))];
    protocol.n = pick(1, static_cast<std::uint64_t>(lambda));
    protocol.per_gradient = pick(0, 1) == 1;
    protocol.bound = pick(0, 4);
    protocol.k = pick(1, 2 * static_cast<std::uint64_t>(lambda));
    protocol.delay_threshold = pick(1, static_cast<std::uint64_t>(lambda) + 2);
    protocol.cancel = pick(0, 1) == 1;
    protocol.admit = static_cast<Admit>(pick(0, 2));
    if (protocol.name == "rennala" || protocol.name == "admission")
        protocol.gradients_per_update = pick(1, static_cast<std::uint64_t>(lambda));
    for (const char* name : {"rennala", "ringmaster", "admission"})
        if (protocol.name == name) scenario.workers.communication.pull_every = 1;
    return it;
}

void check(const Draw& it) {
    TreeChecker checker(it.scenario);
    const auto run = simulate(
        it.scenario, it.samples, it.network, nullptr, -1,
        [&](Time, RoleId role, const Event& event, const Actions& actions) { checker.see(role, event, actions); });
    demand(run.report.status == Status::finished,
           it.scenario.protocol.name + ": the run did not end: " + run.report.detail);
    checker.at_end();
    auto scenario = it.scenario;
    if (leaves_answer(scenario, traits(make_policy(scenario.protocol, scenario.lambda())))) {
        scenario.stop = {};  // what ends an epoch may reach beyond it
        const DealerConfig data{scenario.data.sampling, it.samples, scenario.workers.batch_size, scenario.lambda()};
        for (const auto& row : run.ledger.gradients)
            demand(!scenario.trace.gradients || row.batch == own_batch(data, row.worker, row.worker_seq),
                   "a worker computed on another's batch");
    }
    check_books(scenario, it.samples, run.ledger, run.started);
    demand(static_cast<int>(run.ledger.workers.size()) == it.scenario.lambda(), "a worker kept no books");
    const auto& protocol = it.scenario.protocol;
    const bool pulls = it.scenario.workers.communication.pull_every == 1;
    std::map<Version, int> pushes;
    for (const auto& row : run.ledger.gradients) {
        if (row.outcome != rubato::Outcome::applied) continue;
        ++pushes[row.apply_version];
        if (protocol.name == "hardsync" && pulls) demand(row.staleness() == 0, "hardsync applied a stale gradient");
        if (protocol.name == "rennala") demand(row.staleness() == 0, "rennala applied a stale gradient");
        if (protocol.name == "ringmaster")
            demand(row.staleness() < protocol.delay_threshold, "ringmaster applied a gradient that is too stale");
        if (protocol.name == "admission") demand(row.staleness() <= *protocol.bound, "admission's bound is broken");
        if (protocol.name == "bounded-delay" && pulls)
            demand(row.staleness() <= 2 * (protocol.k - 1), "bounded-delay's bound is broken");
    }
    const auto c = gradients_per_update(protocol, it.scenario.lambda());
    for (const auto& row : run.ledger.updates) {
        const int parts = pushes[row.version - 1];
        if (protocol.name == "async") demand(parts == 1, "async takes one push an update");
        if (protocol.name == "n-softsync") demand(parts >= c, "an update with less than c pushes");
    }
}

}  // namespace

TEST_CASE("tree: the books balance and the run ends, whatever the seed draws") {
    for_seeds(3000, [](std::uint64_t seed) { check(draw_tree(seed)); });
}

TEST_CASE("tree: a run that is interrupted at any step ends in order, with every gradient in the books") {
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        const auto it = draw_tree(seed);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, static_cast<std::int64_t>(seed));
        auto scenario = it.scenario;
        scenario.stop = {};
        REQUIRE_NOTHROW(check_books(scenario, it.samples, run.ledger, run.started));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
    }
}

TEST_CASE("tree: a run that a failed transfer ends says so, with every gradient in the books") {
    int lost = 0;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        auto it = draw_tree(seed);
        it.network.fails_after = static_cast<std::int64_t>(seed % 97);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network);
        auto scenario = it.scenario;
        scenario.stop = {};
        REQUIRE_NOTHROW(check_books(scenario, it.samples, run.ledger, run.started));
        if (run.report.status == Status::finished) continue;
        REQUIRE(run.report.status == Status::peer_lost);
        ++lost;
    }
    CHECK(lost > 100);
}

TEST_CASE("tree: mean staleness of 1-softsync is between 0.9 and 1.5 where transfers are short") {
    const auto mean = [](int lambda, int leaves, double cv) {
        auto scenario = timing_scenario("n-softsync", lambda, 8, cv);
        scenario.workers.hosts = leaves;
        scenario.topology = "tree";
        scenario.tree.leaves_by_host = true;
        scenario.stop.updates = 400;
        const auto run = simulate(scenario, 100'000, {1e-6, 1e12, 0, 0});
        double sum = 0, count = 0;
        for (const auto& row : run.ledger.gradients) {
            if (row.outcome != rubato::Outcome::applied) continue;
            sum += static_cast<double>(row.staleness());
            ++count;
        }
        return sum / count;
    };
    for (const double cv : {0.1, 0.3, 1.0}) {
        const double small = mean(30, 4, cv), large = mean(54, 8, cv);
        CAPTURE(cv);
        MESSAGE("cv " << cv << ": 30 workers, 4 leaves " << small << "; 54 workers, 8 leaves " << large);
        CHECK(small > 0.9);
        CHECK(small < 1.5);
        CHECK(large > 0.9);
        CHECK(large < 1.5);
    }
}
