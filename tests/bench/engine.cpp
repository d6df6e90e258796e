// The engine and the driver without a network model: messages a second over links that never share, with the scenario
// of messages.json. One JSON object a line. Called with "N M" it simulates N workers and M gradients once.
#include "sim/run.hpp"
#include "support/ideal_network.hpp"
#include "trace/recorder.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace rubato;

namespace {

Scenario scenario_of(int workers, std::int64_t gradients) {
    Scenario scenario;
    scenario.name = "bench";
    scenario.model.gradients = false;
    scenario.cost.push_bytes = scenario.cost.pull_bytes = 300'000'000;
    scenario.workers.groups = {{workers, "default", 0}};
    scenario.workers.batch_size = 32;
    scenario.protocol.name = "async";
    scenario.stop.gradients = gradients;
    DeviceSpec device;
    device.kind = DeviceSpec::Kind::affine;
    device.a = 0.1;
    scenario.cluster.devices["default"] = device;
    scenario.cluster.noise.cv = 0.1;
    scenario.cluster.network.concurrent_transfers = 8;
    scenario.trace.gradients = false;
    scenario.trace.updates = false;
    return scenario;
}

void measure(int workers, std::int64_t gradients) {
    const Scenario scenario = scenario_of(workers, gradients);
    test::IdealNetwork network(sim::star_hosts(scenario), 1e-5, 12.5e9 / 8);
    const auto placement = sim::place(scenario, network.hosts());
    trace::RecorderOptions options;
    options.samples = 50'000;
    trace::Recorder recorder(scenario, options);
    sim::RunInput input;
    input.scenario = &scenario;
    input.samples = 50'000;
    input.parameters = 1;
    input.recorder = &recorder;
    const auto begin = std::chrono::steady_clock::now();
    const auto report = sim::Run(input, network, placement).go();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::printf(
        "{\"name\": \"messages/s without a network model, %d workers\", \"value\": %.0f, \"target\": \"\", \"detail\": "
        "\"\"}\n",
        workers, static_cast<double>(report.messages) / seconds);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3) return measure(std::atoi(argv[1]), std::atoll(argv[2])), 0;
    for (const int workers : {30, 1'000, 10'000}) measure(workers, 1'000'000);
    return 0;
}
