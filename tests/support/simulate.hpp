// Runs a scenario under virtual time on the ideal network, watched by the checkers.
#pragma once

#include "sim/run.hpp"
#include "support/checkers.hpp"
#include "support/ideal_network.hpp"

#include <atomic>
#include <functional>

namespace rubato::test {

struct Simulated {
    trace::DriverReport report;
    Ledger ledger;
    std::int64_t started = 0;
};

/// What a driver is given to train: both must outlive it.
inline sim::RunInput input_of(const Scenario& scenario, const learn::Task& task) {
    sim::RunInput input;
    input.scenario = &scenario;
    input.task = &task;
    input.samples = task.samples();
    input.parameters = task.parameters();
    return input;
}

struct NetworkShape {
    double latency_s = 1e-5;
    double bandwidth = 1e12;
    double jitter = 0;
    std::uint64_t seed = 0;
    std::int64_t fails_after = -1;  ///< transfers that arrive before one fails; -1: none does
};

/// A scenario of timing only: lambda workers, 1 ms a sample on a host of its own, lognormal noise.
inline Scenario timing_scenario(const std::string& protocol, int lambda, int batch_size, double noise_cv = 0.1) {
    Scenario scenario;
    scenario.name = "test";
    scenario.model.gradients = false;
    scenario.cost.push_bytes = scenario.cost.pull_bytes = 1000;
    scenario.workers.groups = {{lambda, "default", 0}};
    scenario.workers.batch_size = batch_size;
    scenario.protocol.name = protocol;
    DeviceSpec device;
    device.kind = DeviceSpec::Kind::affine;
    device.b = 1e-3;
    scenario.cluster.devices["default"] = device;
    scenario.cluster.noise.cv = noise_cv;
    scenario.cluster.network.concurrent_transfers = 0;
    return scenario;
}

/// The same with real gradients: a small network on synthetic images.
inline Scenario learning_scenario(const std::string& protocol, int lambda, int batch_size,
                                  const std::string& model = "mlp", std::int64_t samples = 121) {
    Scenario scenario = timing_scenario(protocol, lambda, batch_size, 0.3);
    scenario.model.gradients = true;
    scenario.model.name = model;
    scenario.model.hidden = {7};
    scenario.data.dataset = "synthetic";
    scenario.data.samples = samples;
    scenario.data.test_samples = 20;
    scenario.data.shape = {4, 4, 1};
    scenario.data.classes = 3;
    scenario.optimizer.learning_rate = 0.05;
    return scenario;
}

/// Whether messages have parts of a model, which has to have some.
inline bool parts_alone(const Scenario& scenario) {
    return scenario.topology == "sharded" || scenario.protocol.averages_in_parts() || scenario.protocol.reduces() ||
           scenario.protocol.averaging.spread.swarm;
}

/// Sees every step.
using Watcher = std::function<void(Time, RoleId, const Event&, const Actions&)>;

/// interrupt_after: so many steps until a signal comes; -1: none.
inline Simulated simulate(const Scenario& scenario, std::int64_t samples, const NetworkShape& shape = {},
                          const learn::Task* task = nullptr, std::int64_t interrupt_after = -1,
                          const Watcher& watch = nullptr) {
    IdealNetwork network(sim::star_hosts(scenario), shape.latency_s, shape.bandwidth, shape.jitter, shape.seed);
    network.fails_after = shape.fails_after;
    const auto placement = sim::place(scenario, network.hosts());
    Simulated result;
    StepChecker checker;
    sim::RunInput input;
    input.scenario = &scenario;
    input.task = task;
    input.samples = samples;
    input.parameters = task ? task->parameters() : parts_alone(scenario) ? 0 : 1;
    std::atomic<bool> interrupted{false};
    input.interrupted = &interrupted;
    input.observer = [&](Time now, RoleId role, const Event& event, const Actions& actions) {
        checker.see(now, role, event, actions);
        if (watch) watch(now, role, event, actions);
        result.ledger.add(actions);
        if (interrupt_after >= 0 && interrupt_after-- == 0) interrupted = true;
    };
    result.report = sim::Run(input, network, placement).go();
    const auto status = result.report.status;
    if (status != Status::deadlock && status != Status::peer_lost) checker.at_end();
    result.started = checker.started;
    return result;
}

}  // namespace rubato::test
