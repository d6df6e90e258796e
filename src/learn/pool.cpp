#include "learn/pool.hpp"

#include <algorithm>

namespace rubato::learn {

Pool::Pool(const Task& task, int threads) : task_(task) {
    if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    threads_.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { loop(); });
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
    {
        std::lock_guard lock(mutex_);
        job.state = GradientJob::State::queued;
        job.error = nullptr;
        queue_.push_back(&job);
    }
    work_.notify_one();
}

void Pool::wait(GradientJob& job) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return job.state == GradientJob::State::done; });
    if (job.error) std::rethrow_exception(job.error);
}

void Pool::cancel(GradientJob& job) {
    std::unique_lock lock(mutex_);
    if (job.state == GradientJob::State::queued) {
        queue_.erase(std::find(queue_.begin(), queue_.end(), &job));
        job.state = GradientJob::State::done;
        return;
    }
    done_.wait(lock, [&] { return job.state == GradientJob::State::done; });
}

void Pool::run(int jobs, const std::function<void(int)>& job) {
    std::unique_lock lock(mutex_);
    function_ = &job;
    next_ = 0;
    count_ = jobs;
    work_.notify_all();
    done_.wait(lock, [&] { return next_ >= count_ && running_ == 0; });
    function_ = nullptr;
}

void Pool::loop() {
    const auto workspace = task_.workspace();
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [&] { return closing_ || !queue_.empty() || (function_ != nullptr && next_ < count_); });
        if (closing_) return;
        if (function_ != nullptr && next_ < count_) {
            const int index = next_++;
            const auto* function = function_;
            ++running_;
            lock.unlock();
            (*function)(index);
            lock.lock();
            --running_;
            done_.notify_all();
            continue;
        }
        GradientJob& job = *queue_.front();
        queue_.pop_front();
        job.state = GradientJob::State::running;
        lock.unlock();
        try {
            job.loss = task_.gradient(job.weights, job.worker, job.worker_seq, job.batch, job.gradient, *workspace);
        } catch (...) {
            job.error = std::current_exception();
        }
        lock.lock();
        job.state = GradientJob::State::done;
        done_.notify_all();
    }
}

}  // namespace rubato::learn
