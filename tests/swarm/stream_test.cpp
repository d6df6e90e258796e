// Streaming DiLoCo over random clusters: books balance, fragments are handed on and merged after the steps that they
// are to be, and the run ends, whatever is drawn and whenever it is stopped. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/averaging_draw.hpp"
#include "swarm/seeds.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rubato;
using namespace rubato::test;

namespace {

/// What a worker does between its steps, and when.
class StreamChecker {
public:
    explicit StreamChecker(const Scenario& scenario)
        : overlap_(scenario.protocol.averaging.stream.overlap),
          fragments_(scenario.protocol.averaging.stream.fragments),
          every_(scenario.protocol.averaging.tau / fragments_),
          workers_(static_cast<std::size_t>(scenario.lambda()) + 1) {}

    void see(Time, RoleId role, const Event& event, const Actions& actions) {
        Worker& it = workers_[static_cast<std::size_t>(role)];
        if (const auto* delivered = std::get_if<Delivered>(&event); delivered != nullptr && role > 0) {
            if (const auto* model = std::get_if<Model>(&delivered->message)) {
                demand(model->version == it.came + 1 || (model->version == 0 && it.came == -1), "a version is missing");
                it.came = model->version;
            }
            stopped_ |= std::holds_alternative<Stop>(delivered->message);
        }
        if (std::holds_alternative<Applied>(event)) ++it.steps;
        for (const auto& action : actions.list) {
            if (std::holds_alternative<Compute>(action) && role > 0) {
                const std::int64_t due = it.steps < every_ ? 0 : (it.steps - overlap_) / every_;
                demand(it.merged == due || (it.steps >= every_ && it.steps % every_ < overlap_ && it.merged == due),
                       "a step on fragments that it should not have, or without one that it should");
                demand(it.handed_on == it.steps / every_, "a fragment was not handed on");
                beside += it.handed_on > it.merged;
            }
            const auto* mix = std::get_if<Mix>(&action);
            if (mix == nullptr || role == 0 || mix->beside) continue;
            demand(mix->work == Mix::Work::copy, "a worker is charged for something else than copies");
            if (mix->out == no_buffer) {
                demand(it.steps == every_ * (it.handed_on + 1) || it.steps == 0, "handed on after other steps");
                ++it.handed_on;
            } else {
                demand(it.came > it.merged, "a fragment was merged before it came");
                demand(it.steps == every_ * (it.merged + 1) + overlap_ || it.steps == 0, "merged after other steps");
                ++it.merged;
            }
        }
    }
    std::int64_t beside = 0;  ///< steps that were begun while a fragment was away

private:
    struct Worker {
        std::int64_t steps = 0, handed_on = 0, merged = 0;
        Version came = -1;
    };
    int overlap_, fragments_, every_;
    std::vector<Worker> workers_;
    bool stopped_ = false;
};

void check_stream_books(const Draw& it, const Simulated& run) {
    const auto& scenario = it.scenario;
    const auto& spec = scenario.protocol.averaging;
    auto books = scenario;
    books.stop = {};
    check_books(books, it.samples, run.ledger, run.started);
    demand(run.ledger.rounds.size() == run.ledger.updates.size(), "a version without a round, or a round without one");
    for (std::size_t i = 0; i < run.ledger.rounds.size(); ++i) {
        const RoundRow& row = run.ledger.rounds[i];
        demand(row.version == static_cast<Version>(i) + 1 && row.round == static_cast<std::int64_t>(i) &&
                   row.shard == static_cast<int>(i) % spec.stream.fragments,
               "rounds are out of order");
        demand(row.steps == run.ledger.updates[i].contributors && row.samples == run.ledger.updates[i].samples &&
                   row.steps == std::int64_t{row.workers} * spec.tau / spec.stream.fragments,
               "a round tells of other steps than its update");
        demand(row.compute_begin_ns <= row.compute_end_ns && row.reduce_begin_ns <= row.compute_end_ns &&
                   row.compute_end_ns <= row.reduce_end_ns && row.reduce_end_ns <= row.prepare_begin_ns &&
                   row.prepare_begin_ns <= row.prepare_end_ns && row.broadcast_begin_ns <= row.broadcast_end_ns &&
                   row.broadcast_end_ns <= row.compute_end_ns,
               "the stages of a round are out of order");
    }
    for (const auto& row : run.ledger.gradients)
        demand(row.outcome != rubato::Outcome::applied || row.staleness() == 0 ||
                   (row.staleness() == 1 && spec.stream.overlap > 0),
               "a step from an old fragment");
    demand(static_cast<int>(run.ledger.workers.size()) == scenario.lambda(), "a worker kept no books");
}

}  // namespace

TEST_CASE("streaming: fragments are exchanged as promised and the run ends, whatever the seed draws") {
    std::int64_t beside = 0;
    for_seeds(1500, [&](std::uint64_t seed) {
        const auto it = draw_stream(seed);
        StreamChecker checker(it.scenario);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, -1,
                                  [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                      checker.see(now, role, event, actions);
                                  });
        demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
        check_stream_books(it, run);
        beside += checker.beside;
    });
    if (std::getenv("RUBATO_SWARM_SEED") == nullptr) CHECK(beside > 5000);
}

TEST_CASE("streaming: a run that is interrupted at any step, or loses a transfer, states every gradient") {
    int interrupted = 0, lost = 0;
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
        auto it = draw_stream(seed);
        INFO("seed ", seed);
        const auto after = static_cast<std::int64_t>(seed % 211);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, after);
        REQUIRE_NOTHROW(check_stream_books(it, run));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
        interrupted += run.report.status == Status::interrupted;
        it.network.fails_after = after % 61;
        const auto broken = simulate(it.scenario, it.samples, it.network);
        REQUIRE_NOTHROW(check_stream_books(it, broken));
        lost += broken.report.status == Status::peer_lost;
    }
    CHECK(interrupted > 500);
    CHECK(lost > 200);
}
