// Measuring this machine: what is measured and how, not how fast it is.
#include "cli/calibrate/measure.hpp"
#include "cli/calibrate/stopwatch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

using namespace rubato;
using namespace rubato::cli;
using doctest::Approx;

namespace {

/// A task whose gradients sleep for 20 us a sample, so that any number of them may run at once on any machine.
class SleepingTask final : public learn::Task {
public:
    std::int64_t parameters() const override { return 1000; }
    std::int64_t samples() const override { return 100; }
    std::unique_ptr<learn::Workspace> workspace() const override { return std::make_unique<learn::Workspace>(); }
    void initialize(std::span<float> weights) const override { std::fill(weights.begin(), weights.end(), 1.0f); }
    double gradient(std::span<const float> weights, WorkerId worker, std::int64_t, const Batch& batch,
                    std::span<float> gradient, learn::Workspace&) const override {
        if (weights.size() != 1000 || gradient.size() != 1000 || weights[7] != 1) throw std::logic_error("buffers");
        if (batch.first < 0 || batch.count < 1 || batch.first + batch.count > samples())
            throw std::logic_error("a batch beyond the samples");
        if (worker == fails) throw std::runtime_error("no gradient");
        const int now = ++at_once;
        for (int most = most_at_once; now > most && !most_at_once.compare_exchange_weak(most, now);) {
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20 * batch.count));
        --at_once;
        return 0;
    }
    Metrics evaluate(std::span<const float>, learn::Parallel&) const override { return {}; }
    std::vector<std::int32_t> sample_ids(WorkerId, const Batch&) const override { return {}; }

    WorkerId fails = -1;
    mutable std::atomic<int> at_once{0}, most_at_once{0};
};

Scenario scenario_with(int workers, int batch_size) {
    Scenario scenario;
    scenario.workers.groups = {{workers, "cpu", 0}};
    scenario.workers.batch_size = batch_size;
    return scenario;
}

}  // namespace

TEST_CASE("gradients are timed one by one while all workers compute") {
    SleepingTask task;
    const auto seconds = time_gradients(task, 40, 3, 0.3, nullptr);
    CHECK(seconds.size() >= 3);
    for (const double value : seconds) CHECK(value >= 40 * 20e-6);
    CHECK(task.most_at_once == 3);
    CHECK(task.at_once == 0);
    task.most_at_once = 0;
    time_gradients(task, 40, 1, 0.1, nullptr);
    CHECK(task.most_at_once == 1);
}

TEST_CASE("a gradient that takes longer than the limit is still timed, and errors and signals end a measurement") {
    SleepingTask task;
    CHECK(time_gradients(task, 100, 2, 1e-9, nullptr).size() >= 2);
    task.fails = 1;
    CHECK_THROWS_WITH(time_gradients(task, 10, 2, 0.1, nullptr), "no gradient");
    task.fails = -1;
    const std::atomic<bool> interrupted{true};
    CHECK_THROWS_AS(time_gradients(task, 10, 2, 60, &interrupted), Interruption);
    CHECK_THROWS_AS(time_updates({}, 1000, 60, &interrupted), Interruption);
    CHECK_THROWS_AS(time_handovers({64}, 60, &interrupted), Interruption);
}

TEST_CASE("updates are measured at sizes around that of the model") {
    OptimizerSpec momentum;
    momentum.name = "momentum";
    momentum.momentum = 0.9;
    const ServerProfile server = time_updates(momentum, 40'000, 0.1, nullptr);
    CHECK(server.source == "measured");
    CHECK(server.bytes.smallest == 40'000);
    CHECK(server.bytes.largest == 640'000);
    REQUIRE(server.push);
    REQUIRE(server.update);
    CHECK(server.push->n > 0);
    const double seconds = server.push->fixed_s + server.push->per_byte_s * 160'000 + server.update->fixed_s +
                           server.update->per_byte_s * 160'000;
    CHECK(seconds > 1e-7);
    CHECK(time_updates({}, 1, 0.01, nullptr).bytes.smallest == 4);
}

TEST_CASE("every size of message is handed over and back") {
    const auto times = time_handovers({64, 1e6}, 0.1, nullptr);
    const auto of = [&](double bytes) {
        return std::count_if(times.begin(), times.end(), [&](const auto& time) { return time.first == bytes; });
    };
    CHECK(of(64) > 0);
    CHECK(of(1e6) > 0);
    CHECK(of(64) + of(1e6) == static_cast<std::ptrdiff_t>(times.size()));
    for (const auto& [bytes, seconds] : times) CHECK(seconds > 0);
}

TEST_CASE("a profile of this machine has all its parts, and messages of ranks where there are some") {
    const SleepingTask task;
    const Scenario scenario = scenario_with(3, 20);
    std::vector<std::string> told;
    std::vector<double> asked;
    MeasureOptions options;
    options.seconds = 1;
    options.progress = [&](const std::string& text) { told.push_back(text); };
    options.rank_messages = [&](const std::vector<double>& bytes) {
        asked = bytes;
        std::vector<RankTimes> ranks{{0, 1, {}}, {0, 2, {}}};
        for (auto& pair : ranks) {
            for (const double size : bytes) pair.messages.emplace_back(size, 1e-5 + size / 1e9);
        }
        return std::optional(ranks);
    };
    const Profile profile = measure(scenario, task, options);
    const DeviceProfile& device = profile.compute.at("cpu");
    std::vector<std::int64_t> batches, workers;
    for (const auto& [batch, times] : device.batches) {
        batches.push_back(batch);
        CHECK(times.mean >= 20e-6 * static_cast<double>(batch));
    }
    for (const auto& [count, factor] : device.host_sharing) workers.push_back(count);
    CHECK(batches == std::vector<std::int64_t>{5, 10, 20, 40, 80});
    CHECK(workers == std::vector<std::int64_t>{1, 2, 3});
    CHECK(device.host_sharing.at(3) == 1);
    CHECK(device.dispatch_s > 0);
    CHECK(profile.cores > 0);
    CHECK_FALSE(profile.host.empty());
    CHECK(profile.server->update->fixed_s >= device.dispatch_s);
    CHECK(profile.network->latency_s == Approx(1e-5).epsilon(1e-3));
    CHECK(profile.network->bandwidth == Approx(1e9).epsilon(1e-3));
    CHECK(profile.network->messages.front().n == 2);
    CHECK(asked.front() == 64);
    CHECK(std::find(told.begin(), told.end(), "gradients of 20 samples, 3 at once") != told.end());
    // Without ranks threads hand messages over, and the profile says so.
    options.rank_messages = [](const auto&) { return std::optional<std::vector<RankTimes>>(); };
    const Profile threads = measure(scenario, task, options);
    REQUIRE(threads.network);
    CHECK(std::any_of(threads.notes.begin(), threads.notes.end(),
                      [](const auto& text) { return text.find("from thread to thread") != std::string::npos; }));
}

TEST_CASE("an estimate is stable once its mean is known to a hundredth") {
    RunningMean constant, scattered;
    for (int i = 0; i < 199; ++i) {
        constant.add(3);
        scattered.add(i % 2 == 0 ? 1 : 2);
    }
    CHECK_FALSE(constant.stable());
    constant.add(3);
    scattered.add(2);
    CHECK(constant.stable());
    CHECK_FALSE(scattered.stable());
    for (int i = 0; i < 2000; ++i) scattered.add(i % 2 == 0 ? 1 : 2);
    CHECK(scattered.stable());
    CHECK(scattered.mean() == Approx(1.5));
    // The standard deviation is 0.5, and there are 2,200 values.
    CHECK(scattered.relative_error() == Approx(0.5 / std::sqrt(2200) / 1.5).epsilon(0.01));
}
