// Random scenarios of protocols that average models, from a seed.
#pragma once

#include "swarm/draw.hpp"

namespace rubato::test {

/// In rounds of all workers.
inline Draw draw_average(std::uint64_t seed) {
    Draw it = draw(seed);
    learn::Stream random(seed, 5, learn::Purpose::synthetic, 0);
    const auto pick = [&](std::uint64_t low, std::uint64_t high) {
        return static_cast<int>(low + random.below(high - low + 1));
    };
    auto& scenario = it.scenario;
    scenario.workers.groups = {{pick(1, 14), "default", pick(0, 3)}};
    scenario.workers.communication = {};
    const Sampling samplings[] = {Sampling::strided, Sampling::random, Sampling::sharded};
    scenario.data.sampling = samplings[random.below(3)];
    auto& protocol = scenario.protocol;
    const char* const names[] = {"sparknet", "local-sgd", "diloco"};
    protocol.name = names[random.below(3)];
    protocol.averaging.tau = pick(1, 6);
    if (protocol.name == "sparknet" && pick(0, 2) == 0) {
        protocol.averaging.gradients = true;
        protocol.averaging.tau = 1;
    }
    if (protocol.name != "sparknet") {
        protocol.averaging.outer_learning_rate = pick(0, 1) == 0 ? 1 : 0.7;
        protocol.averaging.outer_momentum = pick(0, 1) == 0 ? 0 : 0.9;
    }
    protocol.averaging.spread = {pick(0, 2) == 0, pick(2, 9)};
    return it;
}

/// In phases.
inline Draw draw_phases(std::uint64_t seed) {
    Draw it = draw(seed);
    learn::Stream random(seed, 7, learn::Purpose::synthetic, 0);
    const auto pick = [&](std::uint64_t low, std::uint64_t high) {
        return static_cast<int>(low + random.below(high - low + 1));
    };
    auto& scenario = it.scenario;
    scenario.workers.groups = {{pick(1, 14), "default", pick(0, 3)}};
    scenario.workers.communication = {};
    const Sampling samplings[] = {Sampling::strided, Sampling::random, Sampling::sharded};
    scenario.data.sampling = samplings[random.below(3)];
    scenario.protocol.name = "mpca";
    auto& spec = scenario.protocol.averaging.phases;
    spec.phases = pick(1, 3);
    spec.shards = spec.phases == 1 ? 1 : spec.phases + pick(0, 2);
    scenario.cost.push_bytes = scenario.cost.pull_bytes = pick(10, 3'000'000);
    spec.by_steps = pick(0, 1) == 0;
    spec.pull_gradients = pick(0, 1) == 0;
    if (pick(0, 3) > 0) spec.alpha = {0.5, 0.05, 10, 0, pick(0, 6)};
    if (pick(0, 1) == 0) spec.beta = {1, 0.9, 20, 0, 0};
    if (pick(0, 2) > 0) spec.gamma = Ramp::constant(0.7);
    if (pick(0, 1) == 0) scenario.cluster.exchange = {1e-3 * random.uniform(), 1e-9, 1e-4 * random.uniform(), 1e-10};
    scenario.protocol.averaging.spread = {pick(0, 2) == 0, pick(2, 9)};
    return it;
}

}  // namespace rubato::test
