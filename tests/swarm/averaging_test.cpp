// Averaging models, over random clusters: books balance, nobody computes while it communicates, every worker begins a
// round with the same version, and the run ends, whatever is drawn and whenever it is stopped. RUBATO_SWARM_SEED
// repeats one seed.
#include "support/simulate.hpp"
#include "swarm/averaging_draw.hpp"
#include "swarm/seeds.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rubato;
using namespace rubato::test;

namespace {

class RoundChecker {
public:
    explicit RoundChecker(const Scenario& scenario) : scenario_(scenario) {}

    void see(Time, RoleId role, const Event& event, const Actions& actions) {
        if (const auto* delivered = std::get_if<Delivered>(&event)) {
            if (const auto* model = std::get_if<Model>(&delivered->message)) {
                const auto fresh = models_.emplace(std::pair(role, model->version), 0).second;
                demand(fresh || scenario_.protocol.averaging.spread.swarm, "a worker was given a version twice");
                demand(model->version == 0 || models_.count({role, model->version - 1}) == 1,
                       "a worker missed a version");
                const auto [said, first] = said_.emplace(model->version, *model);
                demand(first || said->second == *model, "workers were told different things of a round");
                mine_[role] = model->version;
                if (!fresh) return;
                computes_[role] = true;
                steps_[role] = 0;
            }
        }
        if (const auto* taken = std::get_if<Taken>(&event))
            if (passes_.erase({role, taken->id}) == 1) --passing_[role];
        std::int32_t sending = 0;
        for (const auto& action : actions.list) {
            if (std::holds_alternative<Compute>(action)) {
                demand(computes_[role] && passing_[role] == 0, "a worker computes while it communicates");
                demand(++steps_[role] <= said_.at(mine_[role]).steps, "a worker takes more steps than it was told");
            }
            if (const auto* send = std::get_if<Send>(&action)) {
                if (const auto* share = std::get_if<Share>(&send->message)) {
                    demand(share->version == mine_[role], "a mean of another round");
                    computes_[role] = false;
                }
                if (std::holds_alternative<Model>(send->message) && role > 0) {
                    ++passing_[role];
                    demand(++sending == 1, "two models leave a worker at once");
                    passes_[{role, send->id}] = true;
                }
            }
            if (const auto* mix = std::get_if<Mix>(&action)) {
                double sum = 0;
                for (std::int32_t i = 0; i < mix->term_count; ++i) sum += mix->terms[i].factor;
                if (mix->work == Mix::Work::sum) demand(std::abs(sum - 1) < 1e-12, "the weights of a mean are not 1");
                const auto& spec = scenario_.protocol.averaging;
                if (mix->work == Mix::Work::update && spec.outer_momentum == 0)
                    demand(std::abs(sum - 1) < 1e-12, "the next version is no mean");
            }
        }
    }

private:
    const Scenario& scenario_;
    std::map<std::pair<RoleId, Version>, int> models_;
    std::map<Version, Model> said_;
    std::map<RoleId, Version> mine_;
    std::map<RoleId, bool> computes_;
    std::map<RoleId, int> steps_, passing_;
    std::map<std::pair<RoleId, ActionId>, bool> passes_;
};

void check_average_books(const Scenario& scenario, std::int64_t samples, const Simulated& run) {
    auto books = scenario;
    books.stop = {};
    check_books(books, samples, run.ledger, run.started);
    demand(run.ledger.rounds.size() == run.ledger.updates.size(), "a version without a round, or a round without one");
    Time before = 0;
    for (std::size_t i = 0; i < run.ledger.rounds.size(); ++i) {
        const RoundRow& row = run.ledger.rounds[i];
        demand(row.version == static_cast<Version>(i) + 1 && row.round == static_cast<std::int64_t>(i),
               "rounds are out of order");
        demand(row.steps == run.ledger.updates[i].contributors && row.samples == run.ledger.updates[i].samples,
               "a round tells of other steps than its update");
        demand(row.broadcast_begin_ns >= before && row.broadcast_end_ns >= row.broadcast_begin_ns &&
                   row.compute_begin_ns >= row.broadcast_begin_ns && row.compute_end_ns >= row.compute_begin_ns &&
                   row.reduce_begin_ns <= row.compute_end_ns && row.reduce_end_ns >= row.compute_end_ns &&
                   row.prepare_begin_ns >= row.reduce_end_ns && row.prepare_end_ns >= row.prepare_begin_ns,
               "the stages of a round are out of order");
        before = row.prepare_end_ns;
    }
    for (const auto& row : run.ledger.gradients)
        if (row.outcome == rubato::Outcome::applied) demand(row.staleness() == 0, "a step from an old joint model");
    demand(static_cast<int>(run.ledger.workers.size()) == scenario.lambda(), "a worker kept no books");
}

Draw draw_elastic(std::uint64_t seed) {
    Draw it = draw_average(seed);
    learn::Stream random(seed, 6, learn::Purpose::synthetic, 0);
    it.scenario.protocol.name = "easgd";
    it.scenario.protocol.averaging = {};
    it.scenario.protocol.averaging.tau = static_cast<int>(1 + random.below(6));
    it.scenario.protocol.averaging.alpha = 0.1;
    return it;
}

/// What EASGD promises of its exchanges: one of a worker at a time, which stops the worker for the download and its own
/// move alone, and of which both ends move by the same buffer.
class ElasticChecker {
public:
    void see(Time, RoleId role, const Event& event, const Actions& actions) {
        if (const auto* delivered = std::get_if<Delivered>(&event)) {
            if (const auto* model = std::get_if<Model>(&delivered->message)) {
                asked_[role] = false;
                demand(model->version >= version_[role], "a worker was given an older version");
                version_[role] = model->version;
            }
        }
        if (const auto* taken = std::get_if<Taken>(&event))
            if (taken->id == uploads_[role]) uploads_[role] = 0;
        for (const auto& action : actions.list) {
            if (std::holds_alternative<Compute>(action)) {
                demand(!asked_[role], "a worker computes while it waits for the joint model");
                overlaps += uploads_[role] != 0;
            }
            const auto* send = std::get_if<Send>(&action);
            if (send == nullptr || role == 0) continue;
            if (std::holds_alternative<Inquiry>(send->message)) {
                demand(!asked_[role] && uploads_[role] == 0, "two exchanges of a worker at once");
                asked_[role] = true;
            }
            if (std::holds_alternative<Share>(send->message)) uploads_[role] = send->id;
        }
    }
    std::int64_t overlaps = 0;  ///< gradients that were begun beside an upload

private:
    std::map<RoleId, bool> asked_;
    std::map<RoleId, ActionId> uploads_;
    std::map<RoleId, Version> version_;
};

void check_elastic_books(const Scenario& scenario, std::int64_t samples, const Simulated& run) {
    auto books = scenario;
    books.stop = {};
    check_books(books, samples, run.ledger, run.started);
    demand(run.ledger.rounds.size() == run.ledger.updates.size(), "a version without an exchange, or one without it");
    for (std::size_t i = 0; i < run.ledger.rounds.size(); ++i) {
        const RoundRow& row = run.ledger.rounds[i];
        demand(row.version == static_cast<Version>(i) + 1 && row.steps >= 1 &&
                   row.steps <= scenario.protocol.averaging.tau,
               "an exchange of other steps");
        demand(row.compute_begin_ns <= row.compute_end_ns && row.compute_end_ns <= row.broadcast_begin_ns &&
                   row.broadcast_begin_ns <= row.broadcast_end_ns && row.reduce_begin_ns <= row.reduce_end_ns &&
                   row.reduce_end_ns <= row.prepare_begin_ns && row.prepare_begin_ns <= row.prepare_end_ns,
               "the stages of an exchange are out of order");
    }
    demand(static_cast<int>(run.ledger.workers.size()) == scenario.lambda(), "a worker kept no books");
}

void check(const Draw& it) {
    const auto& scenario = it.scenario;
    RoundChecker checker(scenario);
    const auto run = simulate(scenario, it.samples, it.network, nullptr, -1,
                              [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                                  checker.see(now, role, event, actions);
                              });
    demand(run.report.status == Status::finished, "the run did not end: " + run.report.detail);
    check_average_books(scenario, it.samples, run);
    std::int64_t samples = 0, gradients = 0;
    for (const auto& row : run.ledger.gradients) {
        demand(row.outcome == rubato::Outcome::applied || scenario.stop.seconds,
               "only a stop by time cuts a round short");
        samples += row.samples;
        gradients += row.outcome == rubato::Outcome::applied;
    }
    // The last round goes beyond the limit by less than a step of all workers.
    const auto step = static_cast<std::int64_t>(scenario.lambda());
    if (scenario.stop.gradients)
        demand(gradients >= *scenario.stop.gradients && gradients < *scenario.stop.gradients + step,
               "too many gradients");
    if (scenario.stop.epochs) {
        const auto limit = std::llround(*scenario.stop.epochs * static_cast<double>(it.samples));
        demand(samples >= limit, "the run ended before its epochs");
    }
    if (scenario.stop.updates)
        demand(static_cast<std::int64_t>(run.ledger.updates.size()) == *scenario.stop.updates, "too many updates");
}

}  // namespace

TEST_CASE("averaging: rounds keep their promises and the run ends, whatever the seed draws") {
    for_seeds(2000, [](std::uint64_t seed) { check(draw_average(seed)); });
}

TEST_CASE("averaging: a run that is interrupted at any step ends in order, with every gradient in the books") {
    int interrupted = 0;
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
        const auto it = draw_average(seed);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, static_cast<std::int64_t>(seed % 211));
        REQUIRE_NOTHROW(check_average_books(it.scenario, it.samples, run));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
        interrupted += run.report.status == Status::interrupted;
    }
    CHECK(interrupted > 500);
}

TEST_CASE("averaging: a run that a failed transfer ends says so, with every gradient in the books") {
    int lost = 0;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        auto it = draw_average(seed);
        it.network.fails_after = static_cast<std::int64_t>(seed % 61);
        INFO("seed ", seed);
        const auto run = simulate(it.scenario, it.samples, it.network);
        REQUIRE_NOTHROW(check_average_books(it.scenario, it.samples, run));
        if (run.report.status == Status::finished) continue;
        REQUIRE(run.report.status == Status::peer_lost);
        ++lost;
    }
    CHECK(lost > 100);
}

TEST_CASE("averaging: elastic exchanges keep their promises and the run ends, whatever the seed draws") {
    std::int64_t overlaps = 0;
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
        INFO("seed ", seed);
        const auto it = draw_elastic(seed);
        ElasticChecker checker;
        const auto watch = [&](Time now, RoleId role, const Event& event, const Actions& actions) {
            checker.see(now, role, event, actions);
        };
        Simulated run;
        REQUIRE_NOTHROW(run = simulate(it.scenario, it.samples, it.network, nullptr, -1, watch));
        INFO(run.report.detail);
        REQUIRE(run.report.status == Status::finished);
        REQUIRE_NOTHROW(check_elastic_books(it.scenario, it.samples, run));
        overlaps += checker.overlaps;
    }
    CHECK(overlaps > 1000);
}

TEST_CASE("averaging: an elastic run that is interrupted, or loses a transfer, states every gradient") {
    int interrupted = 0, lost = 0;
    for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
        auto it = draw_elastic(seed);
        INFO("seed ", seed);
        const auto after = static_cast<std::int64_t>(seed % 211);
        const auto run = simulate(it.scenario, it.samples, it.network, nullptr, after);
        REQUIRE_NOTHROW(check_elastic_books(it.scenario, it.samples, run));
        REQUIRE((run.report.status == Status::interrupted || run.report.status == Status::finished));
        interrupted += run.report.status == Status::interrupted;
        it.network.fails_after = after % 61;
        const auto broken = simulate(it.scenario, it.samples, it.network);
        REQUIRE_NOTHROW(check_elastic_books(it.scenario, it.samples, broken));
        lost += broken.report.status == Status::peer_lost;
    }
    CHECK(interrupted > 500);
    CHECK(lost > 200);
}
