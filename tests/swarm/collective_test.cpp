// Replicas without a server over random clusters: books balance, all apply the same gradients in the same order, no
// more than the delay are ever in flight, and the run ends, whatever is drawn and whenever it is stopped.
// RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/collective_draw.hpp"
#include "swarm/seeds.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace rubato;
using namespace rubato::test;

namespace {

/// What all replicas do is the same, in the same order.
class ReplicaChecker {
public:
    void see(Time, RoleId role, const Event& event, const Actions& actions) {
        if (role == 0) return;
        if (const auto* ready = std::get_if<GradientReady>(&event))
            if (computing_[role] == ready->id) computing_[role] = 0;
        if (const auto* applied = std::get_if<Applied>(&event))
            if (updating_.contains(role) && updating_[role] == applied->id) updating_.erase(role);
        for (const Action& action : actions.list) {
            if (const auto* compute = std::get_if<Compute>(&action)) {
                computing_[role] = compute->id;
                demand(!updating_.contains(role), "a worker computes on weights that are being changed");
            }
            if (const auto* update = std::get_if<Update>(&action)) {
                demand(computing_[role] == 0, "weights are changed that a worker computes on");
                updating_[role] = update->id;
                applied_[role].push_back({update->from, update->first, update->count});
            }
        }
    }
    /// sorted: parts of one version may be applied in any order.
    void end(bool sorted) {
        for (auto& [role, list] : applied_) {
            if (sorted) std::sort(list.begin(), list.end());
            demand(list == applied_.begin()->second, "replicas have applied different things");
        }
    }

private:
    using Applying = std::tuple<Version, std::int64_t, std::int64_t>;
    std::map<RoleId, ActionId> computing_, updating_;
    std::map<RoleId, std::vector<Applying>> applied_;
};

void check_collective(const Draw& it, const Simulated& run) {
    const auto& scenario = it.scenario;
    const auto& spec = scenario.protocol.collective;
    auto books = scenario;
    books.stop = {};
    check_books(books, it.samples, run.ledger, run.started);
    demand(static_cast<int>(run.ledger.workers.size()) == scenario.lambda(), "a worker kept no books");
    const std::int64_t most = spec.adaptive ? spec.max_delay : spec.mode == CollectiveMode::delayed ? spec.delay : 0;
    for (const GradientRow& row : run.ledger.gradients) {
        demand(row.outcome == rubato::Outcome::applied, "a gradient is not applied, though all are drained");
        demand(row.staleness() <= most, "a gradient is staler than the delay");
    }
    std::map<std::int64_t, std::pair<std::int32_t, Version>> of_iteration;
    for (const IterationRow& row : run.ledger.iterations) {
        demand(row.it.in_flight <= most && row.it.delay <= most, "more is in flight than the delay");
        demand(row.it.begin_ns <= row.it.computed_ns && row.it.computed_ns <= row.it.end_ns &&
                   row.it.waited_ns <= row.it.end_ns - row.it.begin_ns,
               "an iteration runs backwards");
        const std::pair same(row.it.delay, row.it.version);
        demand(of_iteration.emplace(row.it.iteration, same).first->second == same, "workers disagree on a delay");
    }
    for (const BucketRow& row : run.ledger.buckets)
        demand(row.it.gradient_end_ns <= row.it.apply_begin_ns && row.it.reduce_begin_ns <= row.it.reduce_end_ns &&
                   row.it.reduce_end_ns <= row.it.apply_begin_ns && row.it.apply_begin_ns <= row.it.apply_end_ns,
               "a bucket is applied before its sum is there");
}

}  // namespace

TEST_CASE("collective: replicas stay alike and the run ends, whatever the seed draws") {
    for_seeds(1500, [](std::uint64_t seed) {
        const Draw it = draw_collective(seed);
        ReplicaChecker checker;
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, -1,
                                  [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                      checker.see(now, role, event, actions);
                                  });
        demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
        checker.end(it.scenario.protocol.collective.order == ApplyOrder::completion);
        check_collective(it, run);
        if (it.scenario.stop.updates)
            demand(static_cast<std::int64_t>(run.ledger.updates.size()) == *it.scenario.stop.updates ||
                       it.scenario.stop.gradients || it.scenario.stop.epochs || it.scenario.stop.seconds,
                   "another number of updates");
    });
}

TEST_CASE("collective: a run that is interrupted at any step ends after an iteration that all have done") {
    int interrupted = 0;
    for_seeds(1500, [&](std::uint64_t seed) {
        const Draw it = draw_collective(seed);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, static_cast<std::int64_t>(seed % 307));
        demand(run.report.status == Status::interrupted || run.report.status == Status::finished, run.report.detail);
        check_collective(it, run);
        interrupted += run.report.status == Status::interrupted;
    });
    CHECK(interrupted > 300);
}

TEST_CASE("collective: a run that a failed transfer ends says so, with every gradient in the books") {
    int lost = 0;
    for_seeds(600, [&](std::uint64_t seed) {
        Draw it = draw_collective(seed);
        it.network.fails_after = static_cast<std::int64_t>(seed % 61);
        const auto run = simulate(it.scenario, it.samples, it.network);
        auto books = it.scenario;
        books.stop = {};
        check_books(books, it.samples, run.ledger, run.started);
        lost += run.report.status == Status::peer_lost || run.report.status == Status::deadlock;
    });
    CHECK(lost > 100);
}
