// A recorded run is computed again from its steps, and has to come to the same.
#pragma once

#include "sim/recorded_steps.hpp"
#include "sim/replay/verification.hpp"

#include <doctest/doctest.h>

namespace rubato::test {

inline void check_recomputed(const Recorded& run, const std::vector<Logged>& steps) {
    sim::Verification verification;
    sim::Recomputation recomputation(run.scenario, *run.task, {2, true}, verification);
    for (const auto& step : steps) recomputation.take(step.now, step.role, step.event, step.actions);
    recomputation.end();
    CHECK(verification.loss_difference() == "");
    CHECK(verification.evaluation_difference() == "");
    CHECK(recomputation.outstanding() == 0);
    REQUIRE(recomputation.weights_hash().has_value());
    CHECK(*recomputation.weights_hash() == *run.report.weights_hash);
}

}  // namespace rubato::test
