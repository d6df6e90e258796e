// Asynchronous local SGD over random clusters: books balance, nobody computes between a push and its answer, and the
// run ends, whatever is drawn and whenever it is stopped. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/averaging_draw.hpp"
#include "swarm/seeds.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

/// What is promised of an exchange: the worker pushes all that it has done and begins nothing until it is answered, by
/// the version that has its push and no later one.
class DelayedChecker {
public:
    explicit DelayedChecker(const Scenario& scenario) : scenario_(scenario) {}

    void see(Time, RoleId role, const Event& event, const Actions& actions) {
        if (const auto* delivered = std::get_if<Delivered>(&event)) {
            if (const auto* model = std::get_if<Model>(&delivered->message)) {
                demand(model->steps >= 1 && model->steps <= scenario_.protocol.averaging.tau,
                       "a worker is to take other steps than it may");
                demand(!pushed_[role] || model->version > version_[role], "a push was answered without it");
                pushed_[role] = false;
                version_[role] = model->version;
                left_[role] = model->steps;
            }
            const auto* share = std::get_if<Share>(&delivered->message);
            if (share != nullptr) demand(share->version == version_[delivered->from], "a delta of another version");
        }
        for (const auto& action : actions.list) {
            if (std::holds_alternative<Compute>(action)) {
                demand(!pushed_[role], "a worker computes while it waits for the joint model");
                demand(--left_[role] >= 0, "a worker takes more steps than it was told");
            }
            const auto* send = std::get_if<Send>(&action);
            if (send == nullptr || role == 0) continue;
            if (std::holds_alternative<Share>(send->message)) {
                demand(!pushed_[role], "two pushes of a worker at once");
                demand(send->payload.buffer == no_buffer || left_[role] == 0, "a push of half the steps");
                pushed_[role] = true;
            }
        }
    }

private:
    const Scenario& scenario_;
    std::map<RoleId, bool> pushed_;
    std::map<RoleId, Version> version_;
    std::map<RoleId, int> left_;
};

void check_delayed_books(const Draw& it, const Simulated& run) {
    const auto& scenario = it.scenario;
    auto books = scenario;
    books.stop = {};
    check_books(books, it.samples, run.ledger, run.started);
    demand(run.ledger.rounds.size() == run.ledger.updates.size(), "a version without a push, or a push without one");
    std::map<WorkerId, Version> pulled;
    std::map<Version, Version> read;
    for (const auto& row : run.ledger.gradients)
        if (row.outcome == rubato::Outcome::applied) read[row.apply_version + 1] = row.read_version;
    for (std::size_t i = 0; i < run.ledger.rounds.size(); ++i) {
        const RoundRow& row = run.ledger.rounds[i];
        demand(row.version == static_cast<Version>(i) + 1 && row.steps == run.ledger.updates[i].contributors &&
                   row.samples == run.ledger.updates[i].samples,
               "a push of other steps than its update");
        demand(row.broadcast_begin_ns <= row.broadcast_end_ns && row.broadcast_end_ns <= row.compute_begin_ns &&
                   row.compute_begin_ns <= row.compute_end_ns && row.compute_end_ns <= row.reduce_begin_ns &&
                   row.reduce_begin_ns <= row.reduce_end_ns && row.reduce_end_ns <= row.prepare_begin_ns &&
                   row.prepare_begin_ns <= row.prepare_end_ns,
               "the stages of an exchange are out of order");
        demand(read.at(row.version) == pulled[row.worker],
               "a worker goes on from another version than that of its push");
        pulled[row.worker] = row.version;
    }
    demand(static_cast<int>(run.ledger.workers.size()) == scenario.lambda(), "a worker kept no books");
}

}  // namespace

TEST_CASE("delayed: pushes keep their promises and the run ends, whatever the seed draws") {
    for_seeds(1500, [](std::uint64_t seed) {
        const auto it = draw_delayed(seed);
        DelayedChecker checker(it.scenario);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, -1,
                                  [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                      checker.see(now, role, event, actions);
                                  });
        demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
        check_delayed_books(it, run);
    });
}

TEST_CASE("delayed: a run that is interrupted at any step, or loses a transfer, states every gradient") {
    int interrupted = 0, lost = 0;
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
        auto it = draw_delayed(seed);
        INFO("seed ", seed);
        const auto after = static_cast<std::int64_t>(seed % 211);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, after);
        REQUIRE_NOTHROW(check_delayed_books(it, run));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
        interrupted += run.report.status == Status::interrupted;
        it.network.fails_after = after % 61;
        const auto broken = simulate(it.scenario, it.samples, it.network);
        REQUIRE_NOTHROW(check_delayed_books(it, broken));
        lost += broken.report.status == Status::peer_lost;
    }
    CHECK(interrupted > 500);
    CHECK(lost > 200);
}
