// Averaging in phases over random clusters: shards are in one stage each, nobody waits, books balance, and the run
// ends, whatever is drawn and whenever it is stopped. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/averaging_draw.hpp"
#include "swarm/seeds.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rubato;
using namespace rubato::test;

namespace {

class StageChecker {
public:
    explicit StageChecker(const Scenario& scenario) : spec_(scenario.protocol.averaging.phases) {}

    void see(Time, RoleId role, const Event& event, const Actions& actions) {
        if (const auto* delivered = std::get_if<Delivered>(&event)) {
            if (std::holds_alternative<Exchange>(delivered->message)) asked_[role] = true;
            if (std::holds_alternative<Exchanged>(delivered->message)) ++handed_on_;
        }
        for (const auto& action : actions.list) {
            if (const auto* mix = std::get_if<Mix>(&action)) {
                double sum = 0;
                for (std::int32_t i = 0; i < mix->term_count; ++i) sum += mix->terms[i].factor;
                if (mix->work == Mix::Work::sum || mix->work == Mix::Work::update)
                    demand(std::abs(sum - 1) < 1e-12, "the weights of a mean are not 1");
                if (mix->work == Mix::Work::sum) demand(mix->beside, "a worker stops to add up");
            }
            if (const auto* send = std::get_if<Send>(&action)) {
                if (std::holds_alternative<Exchanged>(send->message))
                    demand(std::exchange(asked_[role], false), "a worker hands on what nobody asked for");
                if (std::holds_alternative<Exchange>(send->message)) told_ += role == 0;
                demand(!(std::holds_alternative<Inquiry>(send->message)), "a worker asks, and so waits");
            }
        }
    }
    void end() const { demand(handed_on_ <= told_, "more was handed on than asked for"); }

private:
    PhasesSpec spec_;
    std::map<RoleId, bool> asked_;
    std::int64_t handed_on_ = 0, told_ = 0;
};

void check_phase_books(const Scenario& scenario, std::int64_t samples, const Simulated& run) {
    auto books = scenario;
    books.stop = {};
    check_books(books, samples, run.ledger, run.started);
    demand(static_cast<int>(run.ledger.workers.size()) == scenario.lambda(), "a worker kept no books");
    const auto& spec = scenario.protocol.averaging.phases;
    std::map<int, Time> free_ns;             // when a shard was last done with a stage
    std::map<std::int64_t, int> of_version;  // rows of a version
    std::set<Version> stated;
    for (const RoundRow& row : run.ledger.rounds) {
        demand(row.shard >= 0 && row.shard < spec.shards, "a round of no shard");
        demand(stated.insert(row.version).second, "two rounds made one version");
        demand(row.reduce_begin_ns >= free_ns[row.shard], "a shard is in two stages at once");
        demand(row.reduce_end_ns >= row.reduce_begin_ns && row.prepare_begin_ns >= row.reduce_end_ns &&
                   row.prepare_end_ns >= row.prepare_begin_ns,
               "the stages of a shard are out of order");
        if (row.broadcast_end_ns >= 0)
            demand(row.broadcast_begin_ns >= row.prepare_end_ns && row.broadcast_end_ns >= row.broadcast_begin_ns,
                   "a shard was broadcast before it was ready");
        free_ns[row.shard] = std::max(row.prepare_end_ns, row.broadcast_end_ns);
        demand(row.workers == scenario.lambda(), "a round without a worker");
    }
    demand(stated.size() == run.ledger.updates.size(), "a version without a round, or a round without one");
    std::map<std::pair<int, WorkerId>, std::int64_t> steps;
    for (const ExchangeRow& row : run.ledger.exchanges) {
        demand(row.begin_ns >= row.asked_ns && row.end_ns >= row.begin_ns, "an exchange runs backwards");
        demand(row.pulls <= row.steps, "more pulls than steps");
        steps[{row.shard, row.worker}] += row.steps;
    }
    std::map<WorkerId, std::int64_t> begun;
    for (const GradientRow& row : run.ledger.gradients) {
        begun[row.worker] += row.count;
        if (row.outcome == rubato::Outcome::applied) demand(row.staleness() >= 0, "a step from the future");
    }
    for (const auto& [key, count] : steps) demand(count <= begun[key.second], "more steps were handed on than taken");
}

void check(const Draw& it) {
    const auto& scenario = it.scenario;
    StageChecker checker(scenario);
    const auto run = simulate(scenario, it.samples, it.network, nullptr, -1,
                              [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                  checker.see(now, role, event, actions);
                              });
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    checker.end();
    check_phase_books(scenario, it.samples, run);
    for (const auto& row : run.ledger.workers) demand(row.policy_wait_ns == 0, "a worker was held up");
    if (scenario.stop.updates)
        demand(static_cast<std::int64_t>(run.ledger.updates.size()) >= *scenario.stop.updates, "too few updates");
}

}  // namespace

TEST_CASE("phases: shards keep to their stages and the run ends, whatever the seed draws") {
    for_seeds(1500, [](std::uint64_t seed) { check(draw_phases(seed)); });
}

TEST_CASE("phases: a run that is interrupted at any step ends in order, with every gradient in the books") {
    int interrupted = 0;
    for_seeds(1500, [&](std::uint64_t seed) {
        const auto it = draw_phases(seed);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, static_cast<std::int64_t>(seed % 307));
        check_phase_books(it.scenario, it.samples, run);
        demand(run.report.status == Status::interrupted || run.report.status == Status::finished, run.report.detail);
        interrupted += run.report.status == Status::interrupted;
    });
    CHECK(interrupted > 500);
}

TEST_CASE("phases: a run that a failed transfer ends says so, with every gradient in the books") {
    int lost = 0;
    for_seeds(600, [&](std::uint64_t seed) {
        auto it = draw_phases(seed);
        it.network.fails_after = static_cast<std::int64_t>(seed % 61);
        const auto run = simulate(it.scenario, it.samples, it.network);
        auto books = it.scenario;
        books.stop = {};
        check_books(books, it.samples, run.ledger, run.started);
        lost += run.report.status == Status::peer_lost;
    });
    CHECK(lost > 100);
}
