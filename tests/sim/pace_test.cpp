// Workers that compute more slowly for a while.
#include "sim/pace.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace rubato;
using doctest::Approx;

namespace {

Scenario with(std::vector<StragglerSpec> stragglers, int workers = 2) {
    Scenario scenario;
    scenario.workers.groups = {{workers, "default", 0}};
    scenario.cluster.stragglers = std::move(stragglers);
    return scenario;
}

Time at(double seconds) {
    return static_cast<Time>(seconds * 1e9);
}

}  // namespace

TEST_CASE("a spell slows the part of a gradient that lies in it") {
    StragglerSpec spell;
    spell.workers = {1};
    spell.slowdown = 4;
    spell.from_s = 10;
    spell.until_s = 20;
    const Scenario scenario = with({spell});
    sim::Pace pace(scenario);
    CHECK(pace.seconds(1, 0, at(12), 1) == 1);
    CHECK(pace.seconds(2, 0, at(0), 1) == Approx(1));
    CHECK(pace.seconds(2, 1, at(9), 2) == Approx(1 + 4));          // half of it within
    CHECK(pace.seconds(2, 2, at(12), 1) == Approx(4));             // all
    CHECK(pace.seconds(2, 3, at(18), 2) == Approx(2 + 1.5));       // a quarter of it within
    CHECK(pace.seconds(2, 4, at(9), 10) == Approx(1 + 10 + 6.5));  // over it and beyond
    CHECK(pace.seconds(2, 5, at(20), 3) == Approx(3));
}

TEST_CASE("spells that overlap multiply") {
    StragglerSpec one, other;
    one.slowdown = 2;
    one.until_s = 10;
    other.slowdown = 3;
    other.from_s = 5;
    other.until_s = 20;
    const Scenario scenario = with({one, other});
    sim::Pace pace(scenario);
    CHECK(pace.seconds(1, 0, at(6), 0.5) == Approx(3));
    CHECK(pace.seconds(1, 1, at(4), 1) == Approx(1 + 3));
    CHECK(pace.seconds(1, 2, at(7), 1.5) == Approx(3 + 3));
}

TEST_CASE("spells at random: their mean times, worker by worker, whoever asks and when") {
    StragglerSpec spec;
    spec.slowdown = 1e9;  // nothing is done within one, so that waits tell the spells
    spec.every_s = 30;
    spec.for_s = 10;
    const Scenario scenario = with({spec});
    sim::Pace pace(scenario), again(scenario);
    double now = 0, busy = 0;
    std::vector<double> first;
    for (std::int64_t seq = 0; seq < 200000; ++seq) {
        const double seconds = pace.seconds(1, seq, at(now), 1);
        if (seq % 1000 == 0) first.push_back(seconds);
        busy += 1;
        now += seconds;
    }
    // A share of 30 / 40; 5,000 spells know it to 1 or 2 %.
    CHECK(busy / now == Approx(0.75).epsilon(0.04));
    now = 0;
    for (std::int64_t seq = 0; seq < 200000; ++seq) {
        const double other = again.seconds(2, seq, at(now), 0.5);
        const double seconds = again.seconds(1, seq, at(now), 1);
        if (seq % 1000 == 0) REQUIRE(seconds == first[static_cast<std::size_t>(seq / 1000)]);
        REQUIRE(other > 0);
        now += seconds;
    }
    // A computation that was cancelled does not use up what lies ahead of it.
    sim::Pace cancelled(scenario);
    cancelled.seconds(1, 0, 0, 1000);
    CHECK(cancelled.seconds(1, 1, at(1), 1) == sim::Pace(scenario).seconds(1, 1, at(1), 1));
}

TEST_CASE("single gradients at random") {
    StragglerSpec spec;
    spec.slowdown = 10;
    spec.probability = 0.1;
    const Scenario scenario = with({spec});
    sim::Pace pace(scenario);
    int slow = 0;
    for (std::int64_t seq = 0; seq < 20000; ++seq) {
        const double seconds = pace.seconds(1, seq, 0, 1);
        REQUIRE((seconds == 1 || seconds == 10));
        slow += seconds == 10 ? 1 : 0;
    }
    CHECK(slow == Approx(2000).epsilon(0.1));
}
