// Rates and momentum by hand.
#include "core/learning_rate.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace rubato;

TEST_CASE("rates: drops, a warm-up and a cosine by epochs") {
    OptimizerSpec spec;
    spec.learning_rate = 0.8;
    for (const double epochs : {0.0, 0.5, 100.0}) CHECK(scheduled_rate(spec, epochs) == 0.8);
    spec.schedule = {{2, 0.5}, {3, 0.5}};
    CHECK(scheduled_rate(spec, 1.999) == 0.8);
    CHECK(scheduled_rate(spec, 2) == 0.4);
    CHECK(scheduled_rate(spec, 3) == 0.2);
    spec.warm_up = {4, 0.25};
    CHECK(scheduled_rate(spec, 0) == 0.2);
    CHECK(scheduled_rate(spec, 1) == 0.8 * (0.25 + 0.75 * 0.25));
    CHECK(scheduled_rate(spec, 2) == 0.4 * (0.25 + 0.75 * 0.5));  // drops go on meanwhile
    CHECK(scheduled_rate(spec, 4) == 0.2);
    spec.schedule.clear();
    spec.warm_up = {};
    spec.cosine = OptimizerSpec::Cosine{8, 0};
    CHECK(scheduled_rate(spec, 0) == 0.8);
    CHECK(scheduled_rate(spec, 4) == doctest::Approx(0.4));
    CHECK(scheduled_rate(spec, 2) == doctest::Approx(0.8 * (1 + std::sqrt(0.5)) / 2));
    CHECK(scheduled_rate(spec, 8) == doctest::Approx(0).scale(1));
    CHECK(scheduled_rate(spec, 9) == scheduled_rate(spec, 8));
    spec.cosine = OptimizerSpec::Cosine{8, 0.25};
    spec.warm_up = {2, 0};
    CHECK(scheduled_rate(spec, 0) == 0);
    CHECK(scheduled_rate(spec, 1) == 0.4);
    CHECK(scheduled_rate(spec, 2) == 0.8);  // whole where the warm-up ends and the cosine begins
    CHECK(scheduled_rate(spec, 5) == doctest::Approx(0.8 * 0.625));
    CHECK(scheduled_rate(spec, 8) == doctest::Approx(0.2));
}

TEST_CASE("momentum: what staleness adds is taken off, down to nothing, and a constant gradient goes as far") {
    for (const double mu : {0.0, 0.5, 0.9, 0.99}) {
        for (const double staleness : {0.0, 0.3, 1.0, 3.0, 9.0, 50.0}) {
            const auto left = decoupled_momentum(mu, staleness);
            CHECK(left.momentum >= 0);
            CHECK(left.momentum <= mu);
            CHECK(left.gain / (1 - left.momentum) == doctest::Approx(1 / (1 - mu)));
            const double lag = left.momentum / (1 - left.momentum);
            if (left.momentum > 0) CHECK(lag + staleness == doctest::Approx(mu / (1 - mu)));
            if (left.momentum == 0) CHECK(staleness >= doctest::Approx(mu / (1 - mu)).epsilon(1e-9));
        }
        CHECK(decoupled_momentum(mu, 0).momentum == mu);  // the very bits: nothing is stale under a barrier
        CHECK(decoupled_momentum(mu, 0).gain == 1);
    }
    CHECK(decoupled_momentum(0.9, 3).momentum == doctest::Approx(6.0 / 7));
    CHECK(decoupled_momentum(0.5, 4).gain == doctest::Approx(2));
}
