// GoSGD over random clusters: books balance, the weight of all is 1 at any time, nobody waits, and the run ends,
// whatever is drawn and whenever it is stopped. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/averaging_draw.hpp"
#include "swarm/seeds.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rubato;
using namespace rubato::test;

namespace {

class GossipChecker {
public:
    explicit GossipChecker(int lambda) : took_(static_cast<std::size_t>(lambda) + 1) {}

    void see(Time, RoleId role, const Event& event, const Actions& actions) {
        const auto at = static_cast<std::size_t>(role);
        if (const auto* taken = std::get_if<Taken>(&event))
            if (sending_.count(role) == 1 && sending_[role] == taken->id) sending_.erase(role);
        if (const auto* delivered = std::get_if<Delivered>(&event))
            if (std::holds_alternative<Gossip>(delivered->message) && role > 0) ++came;
        for (const auto& action : actions.list) {
            if (const auto* mix = std::get_if<Mix>(&action); mix != nullptr && role > 0) {
                double sum = 0;
                for (std::int32_t i = 0; i < mix->term_count; ++i) {
                    sum += mix->terms[i].factor;
                    demand(mix->terms[i].factor >= 0, "a mean with a negative part");
                }
                demand(std::abs(sum - 1) < 1e-12, "the parts of a mean are not 1");
                merges += mix->work == Mix::Work::move;
            }
            overlaps += std::holds_alternative<Compute>(action) && sending_.count(role) == 1;
            const auto* send = std::get_if<Send>(&action);
            if (send == nullptr || role == 0) continue;
            if (std::holds_alternative<Push>(send->message)) ++took_[at];
            if (!std::holds_alternative<Gossip>(send->message) || send->payload.buffer == no_buffer) continue;
            demand(send->to != role && send->to > 0, "a worker hands its model to itself, or to the monitor");
            demand(sending_.emplace(role, send->id).second, "two hand-overs of a worker at once");
            ++handed;
        }
    }
    std::int64_t handed = 0, came = 0, merges = 0;
    std::int64_t overlaps = 0;  ///< gradients that were begun beside a hand-over

private:
    std::vector<std::int64_t> took_;
    std::map<RoleId, ActionId> sending_;
};

void check_gossip_books(const Draw& it, const Simulated& run) {
    auto books = it.scenario;
    books.stop = {};
    check_books(books, it.samples, run.ledger, run.started);
    demand(run.ledger.rounds.size() == run.ledger.updates.size(), "a version without a mean, or a mean without one");
    for (std::size_t i = 0; i < run.ledger.rounds.size(); ++i) {
        const RoundRow& row = run.ledger.rounds[i];
        demand(row.version == static_cast<Version>(i) + 1 && row.steps == run.ledger.updates[i].contributors &&
                   row.samples == run.ledger.updates[i].samples,
               "a mean tells of other steps than its update");
        demand(row.reduce_begin_ns <= row.reduce_end_ns && row.reduce_end_ns <= row.prepare_begin_ns &&
                   row.prepare_begin_ns <= row.prepare_end_ns && row.compute_begin_ns <= row.compute_end_ns &&
                   row.compute_end_ns <= row.reduce_end_ns,
               "the stages of a mean are out of order");
    }
    for (const auto& row : run.ledger.gradients)
        demand(row.outcome != rubato::Outcome::applied || row.staleness() == 0, "a step missed a mean");
    demand(static_cast<int>(run.ledger.workers.size()) == it.scenario.lambda(), "a worker kept no books");
}

}  // namespace

TEST_CASE("gossip: models are handed on as promised and the run ends, whatever the seed draws") {
    std::int64_t overlaps = 0, merges = 0;
    for_seeds(1500, [&](std::uint64_t seed) {
        const auto it = draw_gossip(seed);
        GossipChecker checker(it.scenario.lambda());
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, -1,
                                  [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                      checker.see(now, role, event, actions);
                                  });
        demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
        check_gossip_books(it, run);
        demand(checker.handed == checker.came && checker.came == checker.merges, "a model was handed on in vain");
        for (const auto& row : run.ledger.gradients)
            demand(row.outcome == rubato::Outcome::applied || row.outcome == rubato::Outcome::cancelled,
                   "a step is in no mean");
        for (const auto& row : run.ledger.workers)
            demand(row.policy_wait_ns == 0 && row.pull_request_ns == 0, "a worker waited");
        overlaps += checker.overlaps;
        merges += checker.merges;
    });
    if (std::getenv("RUBATO_SWARM_SEED") != nullptr) return;
    CHECK(overlaps > 500);
    CHECK(merges > 5000);
}

TEST_CASE("gossip: a run that is interrupted at any step, or loses a transfer, states every gradient") {
    int interrupted = 0, lost = 0;
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
        auto it = draw_gossip(seed);
        INFO("seed ", seed);
        const auto after = static_cast<std::int64_t>(seed % 211);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, after);
        REQUIRE_NOTHROW(check_gossip_books(it, run));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
        interrupted += run.report.status == Status::interrupted;
        it.network.fails_after = after % 61;
        const auto broken = simulate(it.scenario, it.samples, it.network);
        REQUIRE_NOTHROW(check_gossip_books(it, broken));
        lost += broken.report.status == Status::peer_lost;
    }
    CHECK(interrupted > 500);
    CHECK(lost > 200);
}
