// Gradients on threads, as the local backend computes them.
#include "cli/calibrate/measure.hpp"
#include "cli/calibrate/stopwatch.hpp"

#include <barrier>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

namespace rubato::cli {
namespace {

/// What the threads of one measurement share.
struct Measurement {
    const learn::Task& task;
    int batch;
    double limit_s;
    const std::atomic<bool>* interrupted;
    bool whole;
    std::vector<float> weights;
    std::barrier<> start;
    std::atomic<int> unstable;  ///< threads whose estimate is not yet stable; the others go on, for the sake of sharing
    std::mutex mutex;
    std::vector<double> seconds;
    std::exception_ptr error;
};

/// The slice that a worker would be dealt in turn.
Batch batch_of(const learn::Task& task, int batch, std::int64_t index) {
    const std::int64_t samples = task.samples();
    const auto count = static_cast<std::int32_t>(std::min<std::int64_t>(batch, samples));
    const std::int64_t slices = std::max<std::int64_t>(1, samples / count);
    return {static_cast<std::int32_t>(index / slices % 1000), count, index % slices * count};
}

void compute(Measurement& shared, int worker, int workers) {
    const auto workspace = shared.task.workspace();
    std::vector<float> gradient(shared.weights.size());
    std::int64_t seq = 0;
    const auto once = [&] {
        const Batch batch = batch_of(shared.task, shared.batch, seq * workers + worker);
        const auto begin = Clock::now();
        shared.task.gradient(shared.weights, worker, seq, batch, gradient, *workspace);
        ++seq;
        return seconds_since(begin);
    };
    shared.start.arrive_and_wait();
    const auto begin = Clock::now();
    // Memory is touched, caches and clocks warm up.
    constexpr int warm_up = 5;
    for (int i = 0; i < warm_up && (i == 0 || seconds_since(begin) < shared.limit_s / 4); ++i) once();
    RunningMean mean;
    std::vector<double> seconds;
    bool counted = true;
    const double least_s = std::min(0.3, shared.limit_s / 2);
    do {
        seconds.push_back(once());
        mean.add(seconds.back());
        if (counted && mean.stable() && seconds_since(begin) > least_s) {
            counted = false;
            --shared.unstable;
        }
        if (shared.interrupted != nullptr && *shared.interrupted) break;
    } while ((shared.whole || shared.unstable > 0) && seconds_since(begin) < shared.limit_s);
    const std::lock_guard lock(shared.mutex);
    shared.seconds.insert(shared.seconds.end(), seconds.begin(), seconds.end());
}

}  // namespace

std::vector<double> time_gradients(const learn::Task& task, int batch, int workers, double limit_s,
                                   const std::atomic<bool>* interrupted, bool whole) {
    Measurement shared{task,
                       batch,
                       limit_s,
                       interrupted,
                       whole,
                       std::vector<float>(static_cast<std::size_t>(task.parameters())),
                       std::barrier<>(workers),
                       workers,
                       {},
                       {},
                       {}};
    task.initialize(shared.weights);
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < workers; ++worker) {
        threads.emplace_back([&shared, worker, workers] {
            try {
                compute(shared, worker, workers);
            } catch (...) {
                shared.start.arrive_and_drop();
                const std::lock_guard lock(shared.mutex);
                shared.error = std::current_exception();
            }
        });
    }
    threads.clear();
    if (shared.error) std::rethrow_exception(shared.error);
    if (interrupted != nullptr && *interrupted) throw Interruption{};
    return std::move(shared.seconds);
}

}  // namespace rubato::cli
