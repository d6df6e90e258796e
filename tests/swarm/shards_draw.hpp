// A seed draws a cluster with sharded servers.
#pragma once

#include "swarm/draw.hpp"

#include <iterator>

namespace rubato::test {

inline Draw draw_shards(std::uint64_t seed) {
    Draw it = draw(seed);
    learn::Stream random(seed, 3, learn::Purpose::synthetic, 0);
    const char* const protocols[] = {"n-softsync", "n-softsync", "hardsync", "bsp",  "async",
                                     "asp",        "ssp",        "ssp",      "dssp", "bounded-delay"};
    const auto pick = [&](std::uint64_t low, std::uint64_t high) {
        return static_cast<int>(low + random.below(high - low + 1));
    };
    auto& scenario = it.scenario;
    const int lambda = pick(1, 12);
    scenario.workers.groups = {{lambda, "default", pick(0, 3)}};
    scenario.workers.communication = {};
    scenario.topology = "sharded";
    scenario.shards.count = pick(1, 7);
    scenario.shards.by_layers = pick(0, 1) == 1;
    for (int layers = pick(1, 6); layers > 0; --layers) scenario.layers.push_back(pick(1, 1000));
    const auto hosts = worker_hosts(scenario.workers);
    scenario.shards.beside_workers = pick(0, 2) == 0 && hosts.back() + 1 >= scenario.shards.count;
    auto& protocol = scenario.protocol;
    protocol.name = protocols[random.below(std::size(protocols))];
    protocol.n = pick(1, static_cast<std::uint64_t>(lambda));
    protocol.per_gradient = pick(0, 1) == 1;
    protocol.bound = pick(0, 4);
    protocol.k = pick(1, 2 * static_cast<std::uint64_t>(lambda));
    protocol.single_dependency = pick(0, 1) == 1;
    protocol.dssp.lower_bound = pick(0, 3);
    protocol.dssp.r_max = pick(0, 6);
    protocol.dssp.mode = static_cast<DsspSpec::Mode>(pick(0, 2));
    return it;
}

}  // namespace rubato::test
