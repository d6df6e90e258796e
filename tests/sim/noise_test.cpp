#include "sim/noise.hpp"
#include "sim/cost.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace rubato;

TEST_CASE("noise has mean 1 and the given spread, and depends on nothing but its key") {
    Scenario scenario;
    scenario.cluster.noise.cv = 0.3;
    double sum = 0, squares = 0;
    const int draws = 40000;
    for (int i = 0; i < draws; ++i) {
        const double factor = sim::noise_factor(scenario, 1 + i % 4, i / 4);
        REQUIRE(factor > 0);
        sum += factor;
        squares += factor * factor;
    }
    const double mean = sum / draws;
    // Four standard errors of the mean of 40,000 draws, and about as much for the spread.
    CHECK(std::abs(mean - 1) < 4 * 0.3 / 200);
    CHECK(std::abs(std::sqrt(squares / draws - mean * mean) - 0.3) < 0.01);
    CHECK(sim::noise_factor(scenario, 3, 17) == sim::noise_factor(scenario, 3, 17));
    CHECK(sim::noise_factor(scenario, 3, 17) != sim::noise_factor(scenario, 4, 17));
    const double first = sim::noise_factor(scenario, 3, 17);
    scenario.seeds.timing = 2;
    CHECK(first != sim::noise_factor(scenario, 3, 17));
    scenario.seeds.data = 9;
    scenario.cluster.noise.cv = 0;
    CHECK(sim::noise_factor(scenario, 3, 17) == 1);
}

TEST_CASE("a driver's noise, computed four at a time, has the bits of each factor asked for alone") {
    Scenario scenario;
    scenario.workers.groups = {{3, "default", 0}};
    for (const double cv : {0.0, 0.01, 0.3, 2.0}) {
        scenario.cluster.noise.cv = cv;
        sim::Noise noise(scenario);
        for (std::int64_t seq = 0; seq < 2000; ++seq)
            for (RoleId role = 1; role <= 3; ++role)
                REQUIRE(noise.factor({role, seq}) == sim::noise_factor(scenario, role, seq));
        CHECK(noise.factor({2, 5}) == sim::noise_factor(scenario, 2, 5));  // back again
    }
}

TEST_CASE("noise of each kind has mean 1, the given spread and its own shape") {
    using Kind = NoiseSpec::Kind;
    Scenario scenario;
    for (const auto& [kind, cv, least, skewness] :
         {std::tuple{Kind::normal, 0.2, 0.05, 0.0}, std::tuple{Kind::exponential, 0.4, 0.6, 2.0}}) {
        scenario.cluster.noise = {cv, {}, kind};
        constexpr int n = 100000;
        double sum = 0, squares = 0, cubes = 0, smallest = 10;
        for (int i = 0; i < n; ++i) {
            const double factor = sim::noise_factor(scenario, 1, i);
            smallest = std::min(smallest, factor);
            sum += factor;
            squares += (factor - 1) * (factor - 1);
            cubes += std::pow((factor - 1) / cv, 3);
        }
        CAPTURE(cv);
        CHECK(sum / n == doctest::Approx(1).epsilon(0.01));
        CHECK(std::sqrt(squares / n) == doctest::Approx(cv).epsilon(0.02));
        CHECK(std::abs(cubes / n - skewness) < 0.15);
        CHECK(smallest >= least);
    }
}
