// A pool of threads for gradients: a simulation hands a job over when the virtual computation starts and waits for it
// only when its virtual end is reached, so workers that overlap in virtual time overlap on the machine's cores.
#pragma once

#include "learn/condition.hpp"
#include "learn/task.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace rubato::learn {

/// One gradient to compute. Its spans stay valid until the job is done or cancelled.
struct GradientJob {
    std::span<const float> weights;  ///< these may be filled in when the job is opened,
    std::span<float> gradient;
    Factors* factors = nullptr;  ///< to be made instead of the gradient's elements; the opener says so each time
    BufferId weights_buffer = no_buffer, gradient_buffer = no_buffer;  ///< from here
    WorkerId worker = 0;
    std::int64_t worker_seq = 0;
    Batch batch;
    Time due = 0;              ///< when it will be waited for
    std::int64_t updates = 0;  ///< number to run late updates to before the weights are read; 0: they are there
    double loss = 0;           ///< result

private:
    friend class Pool;
    enum class State : std::uint8_t { idle, waiting, queued, running, done };
    State state = State::idle;
    bool open = false;        ///< and counted as such
    std::uint64_t order = 0;  ///< of submission
    std::exception_ptr error;
};

/// Results do not depend on the number of threads. Members are called from one thread, the pool's owner, which is one
/// of them: it computes while it waits. Only a few jobs a thread are open at a time, those that are due first; so the
/// gradients in memory, and in the caches, are few however many workers compute.
class Pool final : public Parallel {
public:
    /// Called by the owner before a job is begun: the place to give it weights and memory. May call run().
    using Open = std::function<void(GradientJob&)>;
    /// Called by the thread that computes, before it does: perhaps by several at once. What it throws, the job throws.
    using Begin = std::function<void(const GradientJob&)>;

    /// threads: the owner included; 0 for as many as the process may use cores.
    Pool(const Task& task, int threads, Open open = {}, Begin begin = {});
    ~Pool() override;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    /// The owner included.
    int threads() const { return static_cast<int>(threads_.size()) + 1; }
    void submit(GradientJob& job);
    /// Returns when the job is done; rethrows what it threw. Of one that is done already, at once.
    void wait(GradientJob& job);
    /// The job will not be waited for: drops it if it has not begun, otherwise lets it end.
    void cancel(GradientJob& job);
    void run(int jobs, const std::function<void(int)>& job) override;

private:
    static constexpr std::size_t open_jobs = 4;  ///< for each thread: begun or not, until they are waited for

    struct ByDue {
        bool operator()(const GradientJob* a, const GradientJob* b) const {
            return a->due != b->due ? a->due < b->due : a->order < b->order;
        }
    };

    void loop();
    GradientJob& take_first();
    void open(GradientJob& job);
    void refill();
    void close(GradientJob& job);
    void compute(GradientJob& job, Workspace& workspace) const;
    /// What the owner may do while `job` is not done: the job itself or, while another thread is at it, one that will
    /// be waited for later; null where it can only wait.
    GradientJob* next_for(GradientJob& job);
    void compute_here(GradientJob& job, std::unique_lock<std::mutex>& lock);
    /// One job of run() by the calling thread.
    void take_part(std::unique_lock<std::mutex>& lock);

    const Task& task_;
    Open open_;
    Begin begin_;
    std::unique_ptr<Workspace> workspace_;   ///< the owner's; made when first needed
    std::set<GradientJob*, ByDue> waiting_;  ///< of the owner alone
    std::uint64_t submitted_ = 0;
    std::size_t open_count_ = 0, open_limit_;  ///< of the owner alone, too
    std::mutex mutex_;
    Condition work_, done_;
    std::deque<GradientJob*> queue_;                      ///< opened, for any thread
    const std::function<void(int)>* function_ = nullptr;  ///< of run(), which goes before gradients
    std::exception_ptr error_;                            ///< of run()
    int next_ = 0, count_ = 0, running_ = 0;
    bool closing_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace rubato::learn
