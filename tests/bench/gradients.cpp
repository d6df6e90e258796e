// Real gradients under virtual time against a plain loop over the same kernels, in one process and on two cores.
// One JSON object a line. Called with "loop MODEL BATCH N" it runs N gradients in a loop and prints the
// seconds.
#include "learn/buffers.hpp"
#include "learn/cores.hpp"
#include "learn/optimizer.hpp"
#include "learn/task.hpp"
#include "sim/driver.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace rubato;

namespace {

constexpr int workers = 8;
constexpr int rounds = 9;

struct Subject {
    std::string model;
    int batch_size;
    std::int64_t gradients;
};

/// network: the model of it; null: the default.
Scenario scenario_of(const Subject& subject, int threads, const char* network = nullptr) {
    Scenario scenario;
    scenario.name = "bench";
    scenario.data.dataset = "synthetic";
    scenario.data.samples = 4096;
    scenario.data.test_samples = 64;
    scenario.data.shape = {28, 28, 1};
    scenario.model.name = subject.model;
    scenario.model.hidden = {128};
    scenario.workers.groups = {{workers, "default", 0}};
    scenario.workers.batch_size = subject.batch_size;
    scenario.protocol.name = "async";
    scenario.optimizer.learning_rate = 1e-4;
    scenario.stop.gradients = subject.gradients;
    scenario.evaluate.at_end = false;
    scenario.evaluate.every_epochs.reset();
    scenario.cost.push_bytes = scenario.cost.pull_bytes = 1000000;
    DeviceSpec device;
    device.kind = DeviceSpec::Kind::affine;
    device.a = 0.1;
    scenario.cluster.devices["default"] = device;
    scenario.cluster.noise.cv = 0.1;
    scenario.pool_threads = threads;
    if (network != nullptr) scenario.cluster.network.model = network;
    return scenario;
}

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The kernels alone: gradients on one pair of buffers, or, where there are several weights, what asynchronous training
/// of as many workers has to do by all means: each gradient on the weights of the next worker, and an update into them.
/// The memory is what the simulation has: the kernels are faster where vectors begin with a line of a cache.
double loop_seconds(const learn::Task& task, const Subject& subject, std::size_t weights_count = 1) {
    const auto workspace = task.workspace();
    learn::BufferPool memory(task.parameters());
    std::vector<std::span<float>> weights(weights_count);
    for (auto& one : weights) task.initialize(one = memory.data(memory.allocate()));
    const std::span<float> gradient = memory.data(memory.allocate());
    learn::Optimizer optimizer(scenario_of(subject, 1).optimizer, task.parameters());
    std::size_t newest = 0;
    const auto one = [&](std::int64_t i) {
        const auto first = static_cast<std::int32_t>(i * subject.batch_size % (task.samples() - subject.batch_size));
        Batch batch;
        batch.first = first;
        batch.count = subject.batch_size;
        const auto worker = static_cast<std::size_t>(i) % weights_count;
        task.gradient(weights[worker], 0, i, batch, gradient, *workspace);
        if (weights_count == 1) return;
        const learn::Summand summand{gradient.data(), 1};
        const learn::StepInput step{{&summand, 1}, 1e-4};
        optimizer.apply(weights[newest], weights[worker], {&step, 1});
        newest = worker;
    };
    one(0);  // plans and scratch memory
    const double begin = now();
    for (std::int64_t i = 0; i < subject.gradients; ++i) one(i);
    return now() - begin;
}

double simulated_seconds(const learn::Task& task, const Subject& subject, int threads, const char* network = nullptr) {
    const Scenario scenario = scenario_of(subject, threads, network);
    sim::Simulation simulation(scenario);
    sim::RunInput input;
    input.scenario = &scenario;
    input.task = &task;
    input.samples = task.samples();
    input.parameters = task.parameters();
    return simulation.run(input).wall_s;
}

/// Two processes at once, each with half of the gradients in a loop: the longer of the two.
double two_processes_seconds(const std::string& self, const Subject& subject) {
    const std::string command = self + " loop " + subject.model + " " + std::to_string(subject.batch_size) + " " +
                                std::to_string(subject.gradients / 2);
    std::FILE* both[2] = {popen(command.c_str(), "r"), popen(command.c_str(), "r")};
    double longest = 0;
    for (std::FILE* one : both) {
        double seconds = 0;
        if (one == nullptr || std::fscanf(one, "%lf", &seconds) != 1 || pclose(one) != 0) std::exit(1);
        longest = std::max(longest, seconds);
    }
    return longest;
}

/// How far apart the cores are: a line of a cache to another thread and back, in ns. Where they have no cache in common
/// it is several times as long, and what one thread computes for the other comes that much later.
double round_trip_ns_once() {
    constexpr int turns = 20000;
    alignas(64) std::atomic<int> turn{0};
    std::thread other([&] {
        for (int i = 0; i < turns; ++i) {
            while (turn.load(std::memory_order_acquire) != 2 * i + 1) continue;
            turn.store(2 * i + 2, std::memory_order_release);
        }
    });
    const double begin = now();
    for (int i = 0; i < turns; ++i) {
        turn.store(2 * i + 1, std::memory_order_release);
        while (turn.load(std::memory_order_acquire) != 2 * i + 2) continue;
    }
    other.join();
    return (now() - begin) / turns * 1e9;
}

/// The shortest of a few: a thread may have to wait for its core.
double round_trip_ns() {
    double shortest = round_trip_ns_once();
    for (int again = 0; again < 4; ++again) shortest = std::min(shortest, round_trip_ns_once());
    return shortest;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

void print(const std::string& name, const Subject& subject, double value, const char* target,
           const std::string& detail) {
    std::printf("{\"name\": \"%s, %s batch %d\", \"value\": %.3f, \"target\": \"%s\", \"detail\": \"%s\"}\n",
                name.c_str(), subject.model.c_str(), subject.batch_size, value, target, detail.c_str());
    std::fflush(stdout);
}

void measure(const std::string& self, const Subject& subject) {
    const auto task = learn::make_task(scenario_of(subject, 1));
    std::vector<double> plain, light, training, gain;
    std::vector<std::pair<double, double>> by_distance;  // round trip, gain
    double before = loop_seconds(*task, subject);
    for (int round = 0; round < rounds; ++round) {
        const double one = simulated_seconds(*task, subject, 1);
        const double after = loop_seconds(*task, subject);
        const double loop = (before + after) / 2;
        before = after;
        plain.push_back(one / loop);
        light.push_back(simulated_seconds(*task, subject, 1, "flow") / after);
        training.push_back(one / loop_seconds(*task, subject, workers));
        if (learn::usable_cores() < 2) continue;
        const double two = simulated_seconds(*task, subject, 2);
        const double distance = round_trip_ns();
        const double apart = two_processes_seconds(self, subject);
        gain.push_back((one / two) / (loop / apart));
        by_distance.emplace_back(distance, gain.back());
    }
    print("real gradients / plain loop of gradients", subject, median(plain), "<= 1.1",
          std::to_string(subject.gradients) + " gradients, one thread, " + std::to_string(workers) +
              " workers, async; median of " + std::to_string(rounds));
    print("real gradients / plain loop of gradients, flow network", subject, median(light), "<= 1.1",
          "as above with cluster.network.model flow; median of " + std::to_string(rounds));
    print("real gradients / plain loop of gradients and updates", subject, median(training), "<= 1.1",
          "each gradient on the weights of the next of " + std::to_string(workers) + " workers; median of " +
              std::to_string(rounds));
    if (gain.empty()) return;
    std::ranges::sort(by_distance);
    char detail[160];
    std::snprintf(detail, sizeof detail,
                  "median of %d; in the round of the nearest cores, a line there and back in %.0f ns, %.2f, of the "
                  "farthest, %.0f ns, %.2f",
                  rounds, by_distance.front().first, by_distance.front().second, by_distance.back().first,
                  by_distance.back().second);
    print("gain of two threads / gain of two processes", subject, median(gain), ">= 0.9", detail);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 5 && std::string(argv[1]) == "loop") {
        const Subject subject{argv[2], std::atoi(argv[3]), std::atoll(argv[4])};
        std::printf("%.6f\n", loop_seconds(*learn::make_task(scenario_of(subject, 1)), subject));
        return 0;
    }
    if (argc == 4) return measure(argv[0], {argv[1], std::atoi(argv[2]), std::atoll(argv[3])}), 0;
    measure(argv[0], {"mlp", 32, 5000});
    measure(argv[0], {"mlp", 128, 1200});
    measure(argv[0], {"cnn", 32, 100});
    return 0;
}
