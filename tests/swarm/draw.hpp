// A seed draws a whole configuration.
#pragma once

#include "learn/random.hpp"
#include "support/simulate.hpp"

namespace rubato::test {

struct Draw {
    Scenario scenario;
    std::int64_t samples = 1;
    NetworkShape network;
};

inline Draw draw(std::uint64_t seed) {
    learn::Stream random(seed, 0, learn::Purpose::synthetic, 0);
    const auto pick = [&](std::uint64_t low, std::uint64_t high) { return low + random.below(high - low + 1); };
    const char* protocols[] = {"hardsync", "n-softsync", "async"};
    const Sampling samplings[] = {Sampling::shared_epoch, Sampling::strided, Sampling::random, Sampling::sharded};
    Draw result;
    const auto lambda = static_cast<int>(pick(1, 12));
    auto& scenario = result.scenario;
    scenario = timing_scenario(protocols[random.below(3)], lambda, static_cast<int>(pick(1, 40)),
                               random.uniform() < 0.3 ? 0.0 : random.uniform());
    scenario.protocol.n = static_cast<int>(pick(1, static_cast<std::uint64_t>(lambda)));
    scenario.seed = scenario.seeds.timing = seed;
    scenario.data.sampling = samplings[random.below(4)];
    result.samples = static_cast<std::int64_t>(pick(1, 300));
    scenario.workers.groups = {{lambda, "default", static_cast<int>(pick(0, 4))}};
    scenario.cluster.network.concurrent_transfers = static_cast<int>(pick(0, 3));
    scenario.cost.push_bytes = static_cast<std::int64_t>(pick(1, 1000000));
    scenario.cost.pull_bytes = static_cast<std::int64_t>(pick(1, 1000000));
    if (random.uniform() < 0.5) scenario.cluster.server.push_s = random.uniform() * 1e-3;
    if (random.uniform() < 0.5) scenario.cluster.server.pull_s = random.uniform() * 1e-3;
    if (random.uniform() < 0.5) scenario.cluster.server.update_s = random.uniform() * 1e-2;
    switch (random.below(5)) {
        case 0: scenario.stop.updates = static_cast<std::int64_t>(pick(1, 60)); break;
        case 1: scenario.stop.gradients = static_cast<std::int64_t>(pick(1, 200)); break;
        case 2: scenario.stop.seconds = 0.2 * random.uniform(); break;
        default: scenario.stop.epochs = 0.25 * static_cast<double>(pick(1, 12));
    }
    result.network = {random.uniform() * 1e-3, 1e6 + random.uniform() * 1e10, 2 * random.uniform(), seed};
    auto& communication = scenario.workers.communication;
    if (random.below(3) == 0) communication.push_every = static_cast<int>(pick(1, 6));
    if (random.below(4) == 0) communication.pull_every = static_cast<int>(pick(1, 4));
    return result;
}

/// Has evaluations hold the workers, of a model without any arithmetic worth mentioning. The task must outlive the run.
inline std::unique_ptr<learn::Task> pause_to_evaluate(Draw& it, double every_epochs) {
    auto& scenario = it.scenario;
    scenario.data.dataset = "synthetic";
    scenario.data.samples = it.samples;
    scenario.model.name = "constant";
    scenario.model.gradients = true;
    scenario.evaluate.every_epochs = every_epochs;
    scenario.evaluate.mode = EvaluateSpec::Mode::pause;
    return learn::make_task(scenario);
}

}  // namespace rubato::test
