// rapidcheck draws a policy with its keys, an uneven cluster and a short run.
#pragma once

#include "swarm/draw.hpp"

#include <rapidcheck.h>

namespace rubato::test {

inline DsspSpec draw_dssp() {
    DsspSpec spec;
    spec.lower_bound = *rc::gen::inRange(0, 4);
    spec.r_max = *rc::gen::inRange(0, 6);
    spec.mode = static_cast<DsspSpec::Mode>(*rc::gen::inRange(0, 3));
    spec.slowest = static_cast<DsspSpec::Slowest>(*rc::gen::inRange(0, 3));
    for (bool* it : {&spec.table_on_every_push, &spec.ties_are_fastest, &spec.smallest_of_ties,
                     &spec.intervals_with_waits, &spec.exact_grants, &spec.intervals_from_start, &spec.keep_grants})
        *it = *rc::gen::arbitrary<bool>();
    // With strict the scenario is refused where it is read.
    spec.look_at_every_push = spec.mode == DsspSpec::Mode::strict || *rc::gen::arbitrary<bool>();
    return spec;
}

inline ProtocolSpec draw_protocol(int lambda) {
    ProtocolSpec spec;
    const char* names[] = {"bsp",     "asp",        "ssp",       "dssp",     "dssp", "bounded-delay", "backup-workers",
                           "rennala", "ringmaster", "admission", "admission"};
    spec.name = names[*rc::gen::inRange(0, 11)];
    spec.per_gradient = *rc::gen::arbitrary<bool>();
    spec.bound = *rc::gen::inRange(0, 5);
    spec.dssp = draw_dssp();
    spec.k = *rc::gen::inRange(1, 2 * lambda + 2);
    spec.single_dependency = *rc::gen::arbitrary<bool>();
    spec.backups = *rc::gen::inRange(0, lambda);
    spec.delay_threshold = *rc::gen::inRange(1, lambda + 2);
    spec.cancel = *rc::gen::arbitrary<bool>();
    spec.admit = static_cast<Admit>(*rc::gen::inRange(0, 3));
    spec.gradients_per_update = *rc::gen::inRange(0, lambda + 3);
    return spec;
}

/// A cluster in which each worker has a speed of its own. plain: nothing is shared, and the server takes no time.
inline Draw draw_cluster(bool plain = false) {
    Draw it;
    const int lambda = *rc::gen::inRange(1, 7);
    const auto fraction = [](int steps = 100) { return *rc::gen::inRange(0, steps) / static_cast<double>(steps); };
    auto& scenario = it.scenario;
    scenario = timing_scenario("asp", lambda, *rc::gen::inRange(1, 9), *rc::gen::element(0.0, 0.1, 0.5, 1.0));
    scenario.seed = scenario.seeds.timing = *rc::gen::inRange<std::uint64_t>(1, 1000000);
    scenario.workers.groups.clear();
    for (int worker = 0; worker < lambda; ++worker) {
        const std::string device = "d" + std::to_string(worker);
        scenario.workers.groups.push_back({1, device, 0});
        DeviceSpec spec = scenario.cluster.devices.at("default");
        spec.b *= *rc::gen::element(1.0, 1.0, 2.79, 0.5, 10.0);
        scenario.cluster.devices[device] = spec;
    }
    it.samples = *rc::gen::inRange(4, 120);
    it.network = {1e-3 * fraction(), 1e6 + 1e9 * fraction(), plain ? 0 : 2 * fraction(), scenario.seed};
    if (plain) return it;
    scenario.cluster.network.concurrent_transfers = *rc::gen::inRange(0, 3);
    scenario.cluster.server.push_s = 1e-3 * fraction();
    scenario.cluster.server.pull_s = 1e-3 * fraction();
    scenario.cluster.server.update_s = *rc::gen::element(0.0, 1e-3, 1e-2) * fraction();
    return it;
}

inline void draw_interval(Draw& it) {
    auto& communication = it.scenario.workers.communication;
    communication.push_every = *rc::gen::element(1, 1, 1, 2, 3, 5);
    communication.pull_every = *rc::gen::element(1, 1, 1, 2, 3);
}

/// With pulls as often as the policy asks for.
inline void use(Draw& it, const ProtocolSpec& protocol) {
    it.scenario.protocol = protocol;
    for (const char* name : {"backup-workers", "rennala", "ringmaster", "admission"})
        if (protocol.name == name) it.scenario.workers.communication.pull_every = 1;
}

inline void draw_end(Draw& it) {
    draw_interval(it);
    auto& stop = it.scenario.stop;
    it.scenario.data.sampling = static_cast<Sampling>(*rc::gen::inRange(0, 4));
    switch (*rc::gen::inRange(0, 5)) {
        case 0: stop.updates = *rc::gen::inRange(1, 30); break;
        case 1: stop.gradients = *rc::gen::inRange(1, 60); break;
        case 2: stop.seconds = 1e-3 * *rc::gen::inRange(1, 200); break;
        default: stop.epochs = 0.25 * *rc::gen::inRange(1, 9);
    }
}

/// In two of three draws: evaluations that hold the workers. null: there are none.
inline std::unique_ptr<learn::Task> draw_pause(Draw& it) {
    const double every_epochs = *rc::gen::element(0.0, 0.1, 0.5);
    return every_epochs > 0 ? pause_to_evaluate(it, every_epochs) : nullptr;
}

/// Workers and hosts that crash, for good or for a while, and links that carry less.
inline void draw_faults(Draw& it) {
    const auto lambda = it.scenario.lambda();
    const int count = *rc::gen::inRange(1, 4);
    for (int i = 0; i < count; ++i) {
        auto& fault = it.scenario.faults.emplace_back();
        const int worker = *rc::gen::inRange(0, lambda);
        switch (*rc::gen::inRange(0, 5)) {
            case 0: fault.hosts = {"host-" + std::to_string(worker + 1)}; break;
            case 1:
                fault.links = {"host-0"};
                fault.bandwidth_factor = *rc::gen::element(0.01, 0.1, 10.0);
                break;
            default: fault.workers = {worker};
        }
        const auto ms = [](int most) { return 1e-3 * *rc::gen::inRange(1, most); };
        if (*rc::gen::arbitrary<bool>()) {
            fault.every_s = 0.1 + ms(300);  // so that gradients come to their end
            fault.for_s = ms(30);
        } else {
            fault.at_s = ms(100) - 1e-3;
            fault.until_s = *rc::gen::element(0.0, 1.0) * (fault.at_s + ms(50));
        }
    }
}

}  // namespace rubato::test
