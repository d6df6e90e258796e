#include "learn/pool.hpp"

#include "learn/cores.hpp"

#include <algorithm>

namespace rubato::learn {

Pool::Pool(const Task& task, int threads, Open open, Begin begin)
    : task_(task), open_(std::move(open)), begin_(std::move(begin)) {
    if (threads <= 0) threads = usable_cores();
    open_limit_ = open_jobs * static_cast<std::size_t>(threads);
    stretches_.resize(static_cast<std::size_t>(threads));
    threads_.reserve(static_cast<std::size_t>(threads - 1));
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this, i] { loop(i); });
}

Pool::~Pool() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
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
            job.thread = thread_for(job);
        }
        open(job);
        std::lock_guard lock(mutex_);
        job.state = GradientJob::State::queued;
        stretch(job.thread).push_back(&job);
        ++queued_;
        work_.notify_one();
    }
}

void Pool::compute(GradientJob& job, Workspace& workspace) const {
    try {
        if (begin_) begin_(job);
        job.loss = task_.gradient(job.weights, job.worker, job.worker_seq, job.batch, job.gradient, workspace);
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

// The threads in turn, each with its share in a row, and one more where it had that worker's last job: what becomes of
// a worker's gradient stays where it is, while the order of workers changes little.
int Pool::thread_for(const GradientJob& job) {
    const auto worker = static_cast<std::size_t>(job.worker);
    if (homes_.size() <= worker) homes_.resize(worker + 1, -1);
    const int home = homes_[worker];
    const std::size_t share = std::max<std::size_t>(1, (open_count_ + 1) / stretches_.size());
    if (in_a_row_ < share + (home == last_thread_ ? 1 : 0)) {
        ++in_a_row_;
        return last_thread_;
    }
    in_a_row_ = 1;
    if (home >= 0 && home != last_thread_) return last_thread_ = home;
    return last_thread_ = (last_thread_ + 1) % threads();
}

GradientJob& Pool::take(int thread) {
    auto& own = stretch(thread);
    auto& from = own.empty() ? *std::ranges::max_element(stretches_, {}, &std::deque<GradientJob*>::size) : own;
    const auto it = own.empty() ? std::prev(from.end()) : from.begin();
    GradientJob& job = **it;
    from.erase(it);
    --queued_;
    homes_[static_cast<std::size_t>(job.worker)] = thread;
    auto order = job.order;
    for (const GradientJob* next : own) {
        if (next->order != ++order) break;
        job.updates = std::max(job.updates, next->updates);
    }
    return job;
}

GradientJob* Pool::next_for(GradientJob& job) {
    if (job.state == GradientJob::State::waiting) return &job;
    return queued_ > 0 ? &take(0) : nullptr;  // what may be open is: refill() sees to it
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
            done_.wait(lock);
    }
    lock.unlock();
    close(job);
    if (job.error) std::rethrow_exception(job.error);
}

void Pool::cancel(GradientJob& job) {
    using State = GradientJob::State;
    std::unique_lock lock(mutex_);
    if (job.state == State::waiting) waiting_.erase(&job);
    if (job.state == State::queued) queued_ -= std::erase(stretch(job.thread), &job);
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
        work_.wait(lock, [&] { return closing_ || queued_ > 0 || (function_ != nullptr && next_ < count_); });
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
