#include "learn/pool.hpp"

#include "learn/cores.hpp"

#include <algorithm>

namespace rubato::learn {

Pool::Pool(const Task& task, int threads, Open open, Begin begin)
    : task_(task), open_(std::move(open)), begin_(std::move(begin)) {
    if (threads <= 0) threads = usable_cores();
    open_limit_ = open_jobs * static_cast<std::size_t>(threads);
    threads_.reserve(static_cast<std::size_t>(threads - 1));
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { loop(); });
}

Pool::~Pool() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
        queue_.clear();
    }
    work_.notify_all();
    for (auto& thread : threads_) thread.join();
}

void Pool::submit(GradientJob& job) {
    job.state = GradientJob::State::waiting;
    job.order = submitted_++;
    job.error = nullptr;
    waiting_.insert(&job);
    refill();
}

void Pool::open(GradientJob& job) {
    waiting_.erase(&job);
    job.open = true;
    ++open_count_;
    if (open_) open_(job);
}

/// Makes room for the next ones.
void Pool::close(GradientJob& job) {
    if (std::exchange(job.open, false)) --open_count_;
    refill();
}

/// Keeps the other threads supplied with what is due first.
void Pool::refill() {
    if (threads_.empty()) return;
    while (!waiting_.empty() && open_count_ < open_limit_) {
        GradientJob& job = **waiting_.begin();
        open(job);
        std::lock_guard lock(mutex_);
        job.state = GradientJob::State::queued;
        queue_.push_back(&job);
        work_.notify_one();
    }
}

void Pool::compute(GradientJob& job, Workspace& workspace) const {
    try {
        if (begin_) begin_(job);
        job.loss = job.factors != nullptr
                       ? task_.gradient(job.weights, job.worker, job.worker_seq, job.batch, *job.factors, workspace)
                       : task_.gradient(job.weights, job.worker, job.worker_seq, job.batch, job.gradient, workspace);
    } catch (...) {
        job.error = std::current_exception();
    }
}

void Pool::compute_here(GradientJob& job, std::unique_lock<std::mutex>& lock) {
    job.state = GradientJob::State::running;
    lock.unlock();
    if (!workspace_) workspace_ = task_.workspace();
    compute(job, *workspace_);
    lock.lock();
    job.state = GradientJob::State::done;
}

GradientJob& Pool::take_first() {
    GradientJob& job = *queue_.front();
    queue_.pop_front();
    return job;
}

GradientJob* Pool::next_for(GradientJob& job) {
    using State = GradientJob::State;
    if (job.state == State::waiting) return &job;
    if (job.state == State::queued) {
        queue_.erase(std::ranges::find(queue_, &job));
        return &job;
    }
    if (!queue_.empty()) return &take_first();
    return nullptr;  // what may be open is: refill() sees to it
}

void Pool::wait(GradientJob& job) {
    if (waiting_.contains(&job)) open(job);  // not while the others are locked out
    std::unique_lock lock(mutex_);
    while (job.state != GradientJob::State::done) {
        if (GradientJob* next = next_for(job))
            compute_here(*next, lock);
        else
            done_.wait(lock, [&] { return job.state == GradientJob::State::done; });
    }
    lock.unlock();
    close(job);
    if (job.error) std::rethrow_exception(job.error);
}

void Pool::cancel(GradientJob& job) {
    using State = GradientJob::State;
    std::unique_lock lock(mutex_);
    if (job.state == State::waiting) waiting_.erase(&job);
    if (job.state == State::queued) queue_.erase(std::ranges::find(queue_, &job));
    done_.wait(lock, [&] { return job.state != State::running; });
    job.state = State::done;
    lock.unlock();
    close(job);
}

void Pool::run(int jobs, const std::function<void(int)>& job) {
    std::unique_lock lock(mutex_);
    function_ = &job;
    error_ = nullptr;
    next_ = 0;
    count_ = jobs;
    work_.notify_all();
    while (next_ < count_) take_part(lock);
    done_.wait(lock, [&] { return running_ == 0; });
    function_ = nullptr;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Pool::take_part(std::unique_lock<std::mutex>& lock) {
    const int index = next_++;
    const auto* function = function_;
    ++running_;
    lock.unlock();
    std::exception_ptr error;
    try {
        (*function)(index);
    } catch (...) {
        error = std::current_exception();
    }
    lock.lock();
    --running_;
    if (error && !error_) error_ = error;
    done_.notify_all();
}

void Pool::loop() {
    const auto workspace = task_.workspace();
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [&] { return closing_ || !queue_.empty() || (function_ != nullptr && next_ < count_); });
        if (closing_) return;
        if (function_ != nullptr && next_ < count_) {
            take_part(lock);
            continue;
        }
        GradientJob& job = take_first();
        job.state = GradientJob::State::running;
        lock.unlock();
        compute(job, *workspace);
        lock.lock();
        job.state = GradientJob::State::done;
        done_.notify_all();
    }
}

}  // namespace rubato::learn
