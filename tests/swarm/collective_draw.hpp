// Random scenarios of protocols without a server, from a seed.
#pragma once

#include "swarm/averaging_draw.hpp"

namespace rubato::test {

inline Draw draw_collective(std::uint64_t seed) {
    Draw it = draw(seed);
    Picker pick(seed, 12);
    draw_workers(it, 9, pick);
    auto& scenario = it.scenario;
    auto& spec = scenario.protocol.collective;
    spec = {};
    const char* const names[] = {"allreduce", "no-comm", "layer-wise", "delayed", "adaptive-delay"};
    scenario.protocol.name = names[pick.random.below(5)];
    const std::string& name = scenario.protocol.name;
    spec.mode = name == "no-comm"      ? CollectiveMode::no_comm
                : name == "layer-wise" ? CollectiveMode::layer_wise
                : name == "allreduce"  ? CollectiveMode::sync
                                       : CollectiveMode::delayed;
    spec.algorithm = static_cast<AllreduceAlgorithm>(pick.random.below(5));
    spec.small = static_cast<AllreduceAlgorithm>(pick.random.below(5));
    spec.small_bytes = pick(0, 1) == 0 ? -1 : pick(1, 100'000);
    spec.order = static_cast<ApplyOrder>(pick.random.below(3));
    spec.delay = pick(0, 4);
    spec.adaptive = name == "adaptive-delay";
    spec.max_delay = pick(1, 4);
    spec.adapt_every = pick(2, 6);
    scenario.cost.push_bytes = scenario.cost.pull_bytes = pick(12, 3'000'000);
    scenario.layers.clear();
    for (int layers = pick(1, 6); layers > 0; --layers) scenario.layers.push_back(pick(1, 1000));
    spec.bucket_bytes = pick(0, 1) == 0 ? 0 : pick(1, 1'000'000);
    if (pick(0, 1) == 0) scenario.cluster.exchange = {1e-3 * pick.random.uniform(), 1e-9, 0, 0};
    scenario.trace.layers = true;
    return it;
}

}  // namespace rubato::test
