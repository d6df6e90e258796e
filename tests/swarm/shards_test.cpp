// Sharded servers, over random clusters: the books of every shard balance and the run ends, whatever is drawn, and no
// worker computes on a part that its shard never made. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/seeds.hpp"
#include "swarm/shards_draw.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

/// What a worker holds of each shard is a version that the shard has made, and no older one than before.
class PartChecker {
public:
    explicit PartChecker(const Scenario& scenario) : lambda_(scenario.lambda()), sharded_(make_shards(scenario, 0)) {}
    void see(RoleId role, const Event& event, const Actions& actions) {
        if (std::holds_alternative<Applied>(event)) ++made_[role];
        if (const auto* delivered = std::get_if<Delivered>(&event)) {
            const auto* weights = std::get_if<Weights>(&delivered->message);
            if (weights != nullptr && role >= 1 && role <= lambda_) {
                auto& held = held_[{role, delivered->from}];
                demand(weights->version <= made_[delivered->from], "weights of a version that was never made");
                demand(held < weights->version, "weights that were there already");
                held = weights->version;
                const auto& range = sharded_.range(sharded_.shard_of(delivered->from));
                demand(delivered->payload.first == range.first && delivered->payload.count == range.count,
                       "a shard sent what is not its part");
            }
        }
        for (const auto& action : actions.list) {
            const auto* send = std::get_if<Send>(&action);
            const auto* push = send ? std::get_if<Push>(&send->message) : nullptr;
            if (push != nullptr)
                demand(push->read_version == held_[{role, send->to}], "a worker computed on another version");
        }
    }

private:
    int lambda_;
    Shards sharded_;
    std::map<RoleId, Version> made_;
    std::map<std::pair<RoleId, RoleId>, Version> held_;
};

void check(const Draw& it) {
    const auto& scenario = it.scenario;
    PartChecker checker(scenario);
    const auto run = simulate(
        scenario, it.samples, it.network, nullptr, -1,
        [&](Time, RoleId role, const Event& event, const Actions& actions) { checker.see(role, event, actions); });
    demand(run.report.status == Status::finished,
           scenario.protocol.name + ": the run did not end: " + run.report.detail);
    const Shards shards = make_shards(scenario, 0);
    check_shard_books(scenario, it.samples, run.ledger, run.started, shards.used());
    demand(static_cast<int>(run.ledger.workers.size()) == scenario.lambda(), "a worker kept no books");
    // Stopped in the middle of a round, a shard may have finished it which the first one has not.
    const bool whole = traits(make_policy(scenario.protocol, scenario.lambda())).batch_order &&
                       !scenario.stop.seconds && !scenario.stop.gradients;
    std::map<int, Version> last;
    for (const auto& update : run.ledger.updates) last[update.shard] = std::max(last[update.shard], update.version);
    for (const auto& [shard, version] : last) {
        demand(version >= last[0], "a shard ended before the first one");
        demand(!whole || version == last[0], "under a barrier a shard was ahead of the first one");
    }
    for (const auto& row : run.ledger.shards) {
        if (row.outcome != rubato::Outcome::applied) continue;
        if (scenario.protocol.name == "hardsync") demand(row.staleness() == 0, "hardsync applied a stale gradient");
        // A lead of b iterations, as in a star (docs/protocols.md).
        if (scenario.protocol.name == "ssp")
            demand(row.staleness() <= (2 * *scenario.protocol.bound + 1) * (scenario.lambda() - 1),
                   "a shard of ssp applied a gradient that is too stale");
    }
    for (const auto& row : run.ledger.workers)
        if (scenario.protocol.name == "hardsync") demand(row.mixed == 0, "hardsync computed on mixed versions");
}

}  // namespace

TEST_CASE("shards: the books of each balance and the run ends, whatever the seed draws") {
    for_seeds(3000, [](std::uint64_t seed) { check(draw_shards(seed)); });
}

TEST_CASE("shards: a run that is interrupted at any step ends in order, with every gradient in every book") {
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        const auto it = draw_shards(seed);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, static_cast<std::int64_t>(seed));
        auto scenario = it.scenario;
        scenario.stop = {};
        REQUIRE_NOTHROW(
            check_shard_books(scenario, it.samples, run.ledger, run.started, make_shards(it.scenario, 0).used()));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
    }
}

TEST_CASE("shards: a run that a failed transfer ends says so, with every gradient in every book") {
    int lost = 0;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        auto it = draw_shards(seed);
        it.network.fails_after = static_cast<std::int64_t>(seed % 97);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network);
        auto scenario = it.scenario;
        scenario.stop = {};
        REQUIRE_NOTHROW(
            check_shard_books(scenario, it.samples, run.ledger, run.started, make_shards(it.scenario, 0).used()));
        if (run.report.status == Status::finished) continue;
        REQUIRE(run.report.status == Status::peer_lost);
        ++lost;
    }
    CHECK(lost > 100);
}

TEST_CASE("shards: where they are unevenly far, gradients of async are computed on mixed versions") {
    auto scenario = timing_scenario("async", 8, 4, 0.3);
    scenario.topology = "sharded";
    scenario.shards.count = 3;
    scenario.layers = {1, 100, 10'000};
    scenario.cost.push_bytes = scenario.cost.pull_bytes = 1'000'000;
    scenario.stop.updates = 300;
    const auto mixed = [&] {
        std::int64_t sum = 0;
        for (const auto& row : simulate(scenario, 10'000, {1e-5, 1e9, 0, 0}).ledger.workers) sum += row.mixed;
        return sum;
    };
    CHECK(mixed() > 30);
    scenario.protocol.name = "hardsync";
    CHECK(mixed() == 0);
}
