// Random scenarios of protocols that average models, from a seed.
#pragma once

#include "swarm/draw.hpp"

namespace rubato::test {

/// Numbers of a stream of the seed's.
struct Picker {
    learn::Stream random;
    Picker(std::uint64_t seed, std::uint32_t stream) : random(seed, stream, learn::Purpose::synthetic, 0) {}
    int operator()(std::uint64_t low, std::uint64_t high) {
        return static_cast<int>(low + random.below(high - low + 1));
    }
};

/// Up to `most` workers, who draw their own batches.
inline void draw_workers(Draw& it, std::uint64_t most, Picker& pick) {
    it.scenario.workers.groups = {{pick(1, most), "default", pick(0, 3)}};
    it.scenario.workers.communication = {};
    const Sampling samplings[] = {Sampling::strided, Sampling::random, Sampling::sharded};
    it.scenario.data.sampling = samplings[pick.random.below(3)];
}

/// In rounds of all workers.
inline Draw draw_average(std::uint64_t seed) {
    Draw it = draw(seed);
    Picker pick(seed, 5);
    draw_workers(it, 14, pick);
    auto& scenario = it.scenario;
    auto& protocol = scenario.protocol;
    const char* const names[] = {"sparknet", "local-sgd", "diloco"};
    protocol.name = names[pick.random.below(3)];
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
    Picker pick(seed, 7);
    draw_workers(it, 14, pick);
    auto& scenario = it.scenario;
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
    if (pick(0, 1) == 0)
        scenario.cluster.exchange = {1e-3 * pick.random.uniform(), 1e-9, 1e-4 * pick.random.uniform(), 1e-10};
    scenario.protocol.averaging.spread = {pick(0, 2) == 0, pick(2, 9)};
    return it;
}

/// async-diloco.
inline Draw draw_delayed(std::uint64_t seed) {
    Draw it = draw(seed);
    Picker pick(seed, 7);
    draw_workers(it, 12, pick);
    auto& scenario = it.scenario;
    scenario.protocol.name = "async-diloco";
    auto& spec = scenario.protocol.averaging;
    spec.tau = pick(1, 6);
    spec.outer_learning_rate = 0.7;
    spec.outer_momentum = pick(0, 2) == 0 ? 0 : 0.9;
    spec.delayed = {pick(0, 5), pick(0, 1) == 0, pick(0, 1) == 0};
    return it;
}

/// easgd or async-diloco.
inline Draw draw_alone(std::uint64_t seed) {
    Draw it = draw_average(seed);
    auto& protocol = it.scenario.protocol;
    learn::Stream random(seed, 11, learn::Purpose::synthetic, 0);
    protocol.name = random.below(2) == 0 ? "easgd" : "async-diloco";
    protocol.averaging.gradients = false;
    protocol.averaging.delayed.dylu = random.below(2) == 0;
    protocol.averaging.delayed.pushes = static_cast<int>(random.below(4));
    return it;
}

/// gosgd.
inline Draw draw_gossip(std::uint64_t seed) {
    Draw it = draw(seed);
    Picker pick(seed, 8);
    draw_workers(it, 12, pick);
    auto& scenario = it.scenario;
    scenario.protocol.name = "gosgd";
    scenario.protocol.averaging.tau = pick(1, 6);
    // A run is not to end by versions, which means alone make.
    if (scenario.stop.updates) scenario.stop.gradients = *scenario.stop.updates;
    scenario.stop.updates.reset();
    return it;
}

/// streaming-diloco.
inline Draw draw_stream(std::uint64_t seed) {
    Draw it = draw(seed);
    Picker pick(seed, 9);
    draw_workers(it, 12, pick);
    auto& scenario = it.scenario;
    scenario.protocol.name = "streaming-diloco";
    scenario.cost.push_bytes = scenario.cost.pull_bytes = pick(10, 1000000);
    auto& spec = scenario.protocol.averaging;
    const int fragments = pick(1, 4), every = pick(1, 5);
    spec.tau = fragments * every;
    spec.outer_momentum = pick(0, 1) == 0 ? 0 : 0.9;
    spec.stream = {fragments, pick(0, static_cast<std::uint64_t>(every) - 1), 0.5};
    spec.phases.shards = fragments;
    spec.phases.by_layers = false;
    return it;
}

/// All workers go within a few milliseconds, at a time when the driver may be making a version, and most come back; few
/// of them may have a part of the data.
inline void draw_end_of_all(Draw& it, learn::Stream& random) {
    it.scenario.cluster.server.update_s = 1e-3 * static_cast<double>(random.below(40));
    if (random.below(3) > 0) it.scenario.data.samples = it.samples = 1 + static_cast<std::int64_t>(random.below(8));
    const double at_s = 1e-3 * static_cast<double>(20 + random.below(200));
    if (random.below(2) == 0) {
        it.scenario.stop = {};
        it.scenario.stop.seconds = at_s + 1e-3 * static_cast<double>(random.below(80));
    }
    for (WorkerId worker = 0; worker < it.scenario.lambda(); ++worker) {
        FaultSpec& fault = it.scenario.faults.emplace_back();
        fault.workers = {worker};
        fault.at_s = at_s + 1e-4 * static_cast<double>(random.below(50));
        if (random.below(8) > 0) fault.until_s = fault.at_s + 1e-3 * static_cast<double>(1 + random.below(100));
    }
}

/// Up to four spells of workers, some for good; or more of them, so short that a worker is back before all others have
/// heard that it was gone. Messages may be on their way for as long as several steps take.
inline void draw_spells(Draw& it, std::uint64_t seed) {
    learn::Stream random(seed, 9, learn::Purpose::synthetic, 0);
    learn::Stream slow(seed, 12, learn::Purpose::synthetic, 0);
    const double latencies_s[] = {it.network.latency_s, 1e-3, 1e-2};
    it.network.latency_s = latencies_s[slow.below(3)];
    const int lambda = it.scenario.lambda();
    const bool brief = seed % 3 == 1;
    const auto spells = 1 + random.below(brief ? 9 : 4);
    for (std::uint64_t i = 0; i < spells; ++i) {
        FaultSpec& fault = it.scenario.faults.emplace_back();
        fault.workers = {static_cast<WorkerId>(random.below(static_cast<std::uint64_t>(lambda)))};
        fault.at_s = 1e-3 * static_cast<double>(1 + random.below(300));
        if (brief)
            fault.until_s = fault.at_s + 1e-5 * static_cast<double>(1 + random.below(200));
        else if (random.below(3) > 0)
            fault.until_s = fault.at_s + 1e-3 * static_cast<double>(1 + random.below(200));
    }
    if (slow.below(3) == 0) draw_end_of_all(it, slow);
}

}  // namespace rubato::test
