// Real gradients under virtual time against a plain loop over the same kernels, in one process and on two cores.
// One JSON object a line. Called with "loop MODEL N" it runs N gradients in a loop and prints the seconds.
#include "learn/task.hpp"
#include "sim/driver.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace rubato;

namespace {

constexpr int workers = 8;

Scenario scenario_of(const std::string& model, std::int64_t gradients, int threads) {
    Scenario scenario;
    scenario.name = "bench";
    scenario.data.dataset = "synthetic";
    scenario.data.samples = 4096;
    scenario.data.test_samples = 64;
    scenario.data.shape = {28, 28, 1};
    scenario.model.name = model;
    scenario.model.hidden = {128};
    scenario.workers.groups = {{workers, "default", 0}};
    scenario.workers.batch_size = 32;
    scenario.protocol.name = "async";
    scenario.optimizer.learning_rate = 1e-4;
    scenario.stop.gradients = gradients;
    scenario.evaluate.at_end = false;
    scenario.evaluate.every_epochs.reset();
    scenario.cost.push_bytes = scenario.cost.pull_bytes = 1000000;
    DeviceSpec device;
    device.kind = DeviceSpec::Kind::affine;
    device.a = 0.1;
    scenario.cluster.devices["default"] = device;
    scenario.cluster.noise.lognormal_cv = 0.1;
    scenario.pool_threads = threads;
    return scenario;
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The kernels alone, on one pair of weights and gradient, or in turn on as many pairs as there are workers: those of a
/// small model stay in a core's cache only where there is one pair.
double loop_seconds(const learn::Task& task, std::int64_t gradients, std::size_t pairs = 1) {
    const auto workspace = task.workspace();
    std::vector<std::vector<float>> weights(pairs, std::vector<float>(static_cast<std::size_t>(task.parameters())));
    auto results = weights;
    for (auto& one : weights) task.initialize(one);
    const auto one = [&](std::int64_t i) {
        const auto first = static_cast<std::int32_t>(i * 32 % (task.samples() - 32));
        Batch batch;
        batch.first = first;
        batch.count = 32;
        const auto pair = static_cast<std::size_t>(i) % pairs;
        task.gradient(weights[pair], 0, i, batch, results[pair], *workspace);
    };
    one(0);  // plans and scratch memory
    const double begin = now();
    for (std::int64_t i = 0; i < gradients; ++i) one(i);
    return now() - begin;
}

double simulated_seconds(const learn::Task& task, const std::string& model, std::int64_t gradients, int threads) {
    const Scenario scenario = scenario_of(model, gradients, threads);
    sim::Simulation simulation(scenario);
    sim::RunInput input;
    input.scenario = &scenario;
    input.task = &task;
    input.samples = task.samples();
    input.parameters = task.parameters();
    return simulation.run(input).wall_s;
}

/// Two processes at once, each with half of the gradients in a loop: the longer of the two.
double two_processes_seconds(const std::string& self, const std::string& model, std::int64_t gradients) {
    const std::string command = self + " loop " + model + " " + std::to_string(gradients / 2);
    std::FILE* both[2] = {popen(command.c_str(), "r"), popen(command.c_str(), "r")};
    double longest = 0;
    for (std::FILE* one : both) {
        double seconds = 0;
        if (one == nullptr || std::fscanf(one, "%lf", &seconds) != 1 || pclose(one) != 0) std::exit(1);
        longest = std::max(longest, seconds);
    }
    return longest;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

void measure(const std::string& self, const std::string& model, std::int64_t gradients) {
    const auto task = learn::make_task(scenario_of(model, gradients, 1));
    std::vector<double> overhead, rotating, gain;
    for (int round = 0; round < 5; ++round) {
        const double loop = loop_seconds(*task, gradients);
        const double one = simulated_seconds(*task, model, gradients, 1);
        overhead.push_back(one / loop);
        rotating.push_back(one / loop_seconds(*task, gradients, workers));
        if (std::thread::hardware_concurrency() < 2) continue;
        const double two = simulated_seconds(*task, model, gradients, 2);
        const double apart = two_processes_seconds(self, model, gradients);
        gain.push_back((one / two) / (loop / apart));
    }
    std::printf(
        "{\"name\": \"real gradients / plain loop, %s\", \"value\": %.3f, \"target\": \"<= 1.1\", "
        "\"detail\": \"%lld gradients of 32 samples, one thread, %d workers, async; median of 5\"}\n",
        model.c_str(), median(overhead), static_cast<long long>(gradients), workers);
    std::printf(
        "{\"name\": \"real gradients / plain loop over the memory of %d workers, %s\", \"value\": %.3f, "
        "\"target\": \"\", \"detail\": \"each worker has weights and a gradient of its own; median of 5\"}\n",
        workers, model.c_str(), median(rotating));
    if (!gain.empty())
        std::printf(
            "{\"name\": \"gain of two threads / gain of two processes, %s\", \"value\": %.3f, "
            "\"target\": \">= 0.9\", \"detail\": \"median of 5\"}\n",
            model.c_str(), median(gain));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::string(argv[1]) == "loop") {
        const std::string model = argv[2];
        const auto gradients = std::atoll(argv[3]);
        std::printf("%.6f\n", loop_seconds(*learn::make_task(scenario_of(model, gradients, 1)), gradients));
        return 0;
    }
    measure(argv[0], "mlp", 8000);
    measure(argv[0], "cnn", 300);
    return 0;
}
