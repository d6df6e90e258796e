// A pool of threads for gradients: a simulation hands a job over when the virtual computation starts and waits for it
// only when its virtual end is reached, so workers that overlap in virtual time overlap on the machine's cores.
#pragma once

#include "learn/task.hpp"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace rubato::learn {

/// One gradient to compute. Its spans stay valid until the job is done or cancelled.
struct GradientJob {
    std::span<const float> weights;
    std::span<float> gradient;
    WorkerId worker = 0;
    std::int64_t worker_seq = 0;
    Batch batch;
    double loss = 0;  ///< result

private:
    friend class Pool;
    enum class State : std::uint8_t { idle, queued, running, done };
    State state = State::idle;
    std::exception_ptr error;
};

/// Results do not depend on the number of threads. Members are called from one thread, the pool's owner.
class Pool final : public Parallel {
public:
    /// threads: 0 for as many as the machine has cores.
    Pool(const Task& task, int threads);
    ~Pool() override;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    void submit(GradientJob& job);
    /// Returns when the job is done; rethrows what it threw.
    void wait(GradientJob& job);
    /// The job will not be waited for: drops it if it has not begun, otherwise lets it end.
    void cancel(GradientJob& job);
    void run(int jobs, const std::function<void(int)>& job) override;

private:
    void loop();

    const Task& task_;
    std::mutex mutex_;
    std::condition_variable work_, done_;
    std::deque<GradientJob*> queue_;
    const std::function<void(int)>* function_ = nullptr;  ///< of run(), which goes before gradients
    int next_ = 0, count_ = 0, running_ = 0;
    bool closing_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace rubato::learn
