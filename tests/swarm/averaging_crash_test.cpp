// Workers crash and return where models are averaged: the rest go on, books balance, and the run ends or names who is
// down, whatever is drawn and whenever it is stopped. RUBATO_SWARM_SEED repeats one seed.
#include "support/simulate.hpp"
#include "swarm/averaging_draw.hpp"
#include "swarm/seeds.hpp"

#include <doctest/doctest.h>
#include <map>

using namespace rubato;
using namespace rubato::test;

namespace {

struct Endings {
    int finished = 0, interrupted = 0, dead = 0, dropped = 0;
};

/// What is told of a round is what is applied in the version that it makes: no steps of one that was given up.
void check_rounds(const Scenario& scenario, const Ledger& ledger) {
    std::map<Version, std::int64_t> applied;
    for (const GradientRow& row : ledger.gradients)
        if (row.outcome == rubato::Outcome::applied) applied[row.apply_version + 1] += row.count;
    for (const RoundRow& row : ledger.rounds) {
        demand(row.workers <= scenario.lambda(), "a round of too many");
        if (scenario.protocol.averages_in_rounds())
            demand(row.steps == applied[row.version], "a version of more steps, or less, than its round had");
    }
}

void check(const Draw& it, std::int64_t interrupt_at, Endings& endings) {
    const auto run = simulate(it.scenario, it.samples, it.network, nullptr, interrupt_at);
    const auto& report = run.report;
    auto books = it.scenario;
    books.stop = {};
    check_books(books, it.samples, run.ledger, run.started);
    demand(static_cast<int>(run.ledger.workers.size()) == it.scenario.lambda(), "a worker kept no books");
    const bool dead = report.status == Status::deadlock && report.detail.find(" is down since ") != std::string::npos;
    demand(report.status == Status::finished || report.status == Status::interrupted || dead,
           "the run ended as " + std::string(name(report.status)) + ": " + report.detail);
    endings.finished += report.status == Status::finished;
    endings.interrupted += report.status == Status::interrupted;
    endings.dead += dead;
    for (const auto& row : run.ledger.gradients) endings.dropped += row.outcome == rubato::Outcome::dropped;
    check_rounds(it.scenario, run.ledger);
    if (it.scenario.stop.updates && report.status == Status::finished)
        demand(static_cast<std::int64_t>(run.ledger.updates.size()) >= *it.scenario.stop.updates, "too few updates");
}

template <class MakeDraw>
Endings hold(MakeDraw&& make) {
    Endings endings;
    for_seeds(1500, [&](std::uint64_t seed) {
        auto it = make(seed);
        draw_spells(it, seed);
        check(it, seed % 3 == 0 ? static_cast<std::int64_t>(seed % 307) : -1, endings);
    });
    CHECK(endings.finished > 500);
    CHECK(endings.interrupted > 100);
    CHECK(endings.dead > 10);
    CHECK(endings.dropped > 100);
    return endings;
}

}  // namespace

TEST_CASE("averages: workers crash and return, and the rest go on") {
    hold(draw_average);
}

TEST_CASE("phases: workers crash and return, and the rest go on") {
    hold(draw_phases);
}

TEST_CASE("easgd, async-diloco: workers crash and return, and the rest go on") {
    hold(draw_alone);
}

TEST_CASE("streaming-diloco: workers crash and return, and the rest go on") {
    hold(draw_stream);
}

TEST_CASE("gosgd: workers crash and return, and the rest go on") {
    hold(draw_gossip);
}
