#include "learn/pool.hpp"

#include "learn/cores.hpp"

#include <algorithm>

namespace rubato::learn {

Pool::Pool(const Task& task, int threads, Open open, Begin begin)
    : task_(task), open_(std::move(open)), begin_(std::move(begin)) {
    if (threads <= 0) threads = usable_cores();
    open_limit_ = open_jobs * static_cast<std::size_t>(threads);
    threads_.reserve(static_cast<std::size_t>(threads - 1));
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this, i] { loop(i); });
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
        {
            std::lock_guard lock(mutex_);
            const auto workers = static_cast<std::size_t>(job.worker) + 1;
            if (homes_.size() < workers) homes_.resize(workers, nobody);
            job.thread = std::max(0, homes_[workers - 1]);
        }
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

GradientJob& Pool::take(int thread) {
    auto it = std::ranges::find_if(
        queue_, [&](const GradientJob* job) { return is_home(*job, thread) || is_home(*job, nobody); });
    return take(it == queue_.end() ? queue_.begin() : it, thread);
}

// Updates that a thread will need for what it has next are run in one go: each of its versions comes of the one before
// in its own caches, and another thread that comes later finds the last of them.
GradientJob& Pool::take(std::deque<GradientJob*>::iterator it, int thread) {
    GradientJob& job = **it;
    it = queue_.erase(it);
    homes_[static_cast<std::size_t>(job.worker)] = thread;
    for (auto order = job.order + 1; it != queue_.end() && (*it)->order == order && is_home(**it, thread);
         ++it, ++order)
        job.updates = std::max(job.updates, (*it)->updates);
    return job;
}

GradientJob* Pool::next_for(GradientJob& job) {
    using State = GradientJob::State;
    if (job.state == State::waiting) return &job;
    if (job.state == State::queued) return &take(std::ranges::find(queue_, &job), 0);
    if (!queue_.empty()) return &take(0);
    return nullptr;  // what may be open is: refill() sees to it
}

void Pool::wait(GradientJob& job) {
    if (waiting_.contains(&job)) {  // not while the others are locked out
        job.thread = 0;
        open(job);
    }
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

void Pool::loop(int thread) {
    const auto workspace = task_.workspace();
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [&] { return closing_ || !queue_.empty() || (function_ != nullptr && next_ < count_); });
        if (closing_) return;
        if (function_ != nullptr && next_ < count_) {
            take_part(lock);
            continue;
        }
        GradientJob& job = take(thread);
        job.state = GradientJob::State::running;
        lock.unlock();
        compute(job, *workspace);
        lock.lock();
        job.state = GradientJob::State::done;
        done_.notify_all();
    }
}

}  // namespace rubato::learn
