// What the server does, and how messages reach it.
#include "cli/calibrate/fit.hpp"
#include "cli/calibrate/measure.hpp"
#include "cli/calibrate/stopwatch.hpp"
#include "learn/apply.hpp"

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

namespace rubato::cli {
namespace {

/// Weights, their next version and gradients of one size, taken in turn as a run does, so that no cache helps more than
/// it would there.
class Updates {
public:
    Updates(const OptimizerSpec& spec, std::int64_t parameters, int gradients)
        : optimizer_(spec, parameters), gradients_(static_cast<std::size_t>(gradients)) {
        const auto size = static_cast<std::size_t>(parameters);
        for (auto* weights : {&from_, &to_}) weights->assign(size, 0.5f);
        for (auto& gradient : gradients_) gradient.assign(size, 1e-3f);
    }
    /// Seconds of one update of so many gradients.
    double run(int count) {
        learn::UpdateJob job;
        job.from = from_;
        job.to = to_;
        for (int i = 0; i < count; ++i) {
            job.summands.push_back({gradients_[next_].data(), 1.0f / static_cast<float>(count), nullptr, -1});
            next_ = (next_ + 1) % gradients_.size();
        }
        job.steps.push_back({0, count, 1e-3});
        const auto begin = Clock::now();
        learn::run(job, optimizer_);
        const double seconds = seconds_since(begin);
        std::swap(from_, to_);
        return seconds;
    }

private:
    learn::Optimizer optimizer_;
    std::vector<float> from_, to_;
    std::vector<std::vector<float>> gradients_;
    std::size_t next_ = 0;
};

void stop_if(const std::atomic<bool>* interrupted) {
    if (interrupted != nullptr && *interrupted) throw Interruption{};
}

/// Sizes around that of the model, elements; the largest within 256 MiB.
std::vector<std::int64_t> sizes_around(std::int64_t parameters) {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {parameters / 4, parameters, 4 * parameters}) {
        if (size >= 1 && (size <= parameters || size <= (64 << 20))) sizes.push_back(size);
    }
    return sizes;
}

}  // namespace

ServerProfile time_updates(const OptimizerSpec& optimizer, std::int64_t parameters, double limit_s,
                           const std::atomic<bool>* interrupted) {
    constexpr int many = 4;
    const auto sizes = sizes_around(parameters);
    std::vector<std::pair<double, double>> single, several;
    for (const std::int64_t size : sizes) {
        Updates updates(optimizer, size, 2 * many);
        const auto bytes = static_cast<double>(size) * sizeof(float);
        for (int i = 0; i < 3; ++i) updates.run(many);
        const auto begin = Clock::now();
        RunningMean mean;
        do {
            single.emplace_back(bytes, updates.run(1));
            several.emplace_back(bytes, updates.run(many));
            mean.add(single.back().second);
            stop_if(interrupted);
        } while (!mean.stable() && seconds_since(begin) < limit_s / static_cast<double>(sizes.size()));
    }
    // What each further gradient adds is its push; the rest of an update of one is the update's own.
    const auto n = static_cast<std::int64_t>(single.size());
    const auto one = medians_by_size(std::move(single)), all = medians_by_size(std::move(several));
    std::vector<MessageTime> push, update;
    for (std::size_t i = 0; i < one.size(); ++i) {
        // A time that no clock tells from none still is one.
        const double further = std::clamp((all[i].seconds - one[i].seconds) / (many - 1), 1e-9, one[i].seconds);
        push.push_back({one[i].bytes, further, one[i].n});
        if (one[i].seconds > further) update.push_back({one[i].bytes, one[i].seconds - further, one[i].n});
    }
    const auto cost = [n](const std::vector<MessageTime>& times) {
        if (times.empty()) return OperationCost{n, 0, 0};
        const LineFit fit = fit_line(times);
        return OperationCost{n, fit.fixed_s, fit.per_byte_s};
    };
    ServerProfile server;
    server.source = "measured";
    server.bytes = {push.front().bytes, push.back().bytes};
    server.push = cost(push);
    server.update = cost(update);
    server.pull = OperationCost{0, 0, 0};
    return server;
}

namespace {

/// A box for one message between two threads.
class Box {
public:
    void put(const std::vector<char>* message) {
        {
            const std::lock_guard lock(mutex_);
            message_ = message;
        }
        changed_.notify_one();
    }
    const std::vector<char>* take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return message_ != nullptr; });
        return std::exchange(message_, nullptr);
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    const std::vector<char>* message_ = nullptr;
};

}  // namespace

std::vector<std::pair<double, double>> time_handovers(const std::vector<double>& bytes, double limit_s,
                                                      const std::atomic<bool>* interrupted) {
    const std::vector<char> end;
    Box there, back;
    std::vector<char> copy;
    std::jthread other([&] {
        std::vector<char> own;
        for (const auto* message = there.take(); message != &end; message = there.take()) {
            own.resize(message->size());
            std::memcpy(own.data(), message->data(), message->size());
            back.put(&own);
        }
    });
    // Whatever happens, the other thread is told to end.
    struct Ender {
        Box& box;
        const std::vector<char>& end;
        ~Ender() { box.put(&end); }
    } const ender{there, end};
    std::vector<std::pair<double, double>> times;
    for (const double size : bytes) {
        const std::vector<char> message(std::max<std::size_t>(1, static_cast<std::size_t>(size)), 1);
        copy.resize(message.size());
        const auto round = [&] {
            there.put(&message);
            std::memcpy(copy.data(), back.take()->data(), message.size());
        };
        for (int i = 0; i < 3; ++i) round();
        const auto begin = Clock::now();
        RunningMean mean;
        do {
            const auto sent = Clock::now();
            round();
            times.emplace_back(size, seconds_since(sent) / 2);  // there and back
            mean.add(times.back().second);
            stop_if(interrupted);
        } while (!mean.stable() && seconds_since(begin) < limit_s / static_cast<double>(bytes.size()));
    }
    return times;
}

}  // namespace rubato::cli
