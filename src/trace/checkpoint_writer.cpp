#include "trace/checkpoint_writer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rubato::trace {

CheckpointWriter::CheckpointWriter(std::string run_directory, CheckpointHead base, const Checkpoint* resumed,
                                   std::function<void(const std::string&)> remark, bool keeps_resumed)
    : directory_(std::move(run_directory)), base_(std::move(base)), remark_(std::move(remark)) {
    if (resumed != nullptr) begin_after(directory_, resumed->head.version());
    if (resumed != nullptr && keeps_resumed) {
        kept_ = resumed->head.version();
        for (const auto& it : resumed->evaluated) needed_by_kept_.push_back(it.first);
    }
    thread_ = std::thread([this] { loop(); });
}

CheckpointWriter::~CheckpointWriter() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void CheckpointWriter::submit(CheckpointView view, std::function<void()> done) {
    view.head.program = base_.program;
    view.head.backend = base_.backend;
    view.head.scenario = base_.scenario;
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !busy_; });
    waits_ = std::move(view);
    done_ = std::move(done);
    busy_ = true;
    lock.unlock();
    wake_.notify_all();
}

void CheckpointWriter::loop() {
    std::unique_lock lock(mutex_);
    while (true) {
        wake_.wait(lock, [this] { return closing_ || waits_; });
        if (!waits_) return;
        const CheckpointView view = std::move(*std::exchange(waits_, std::nullopt));
        const auto done = std::move(done_);
        lock.unlock();
        write(view);
        if (done) done();
        lock.lock();
        busy_ = false;
        wake_.notify_all();
    }
}

// A run that computes is worth more than its checkpoint: where one cannot be written the last one stays.
void CheckpointWriter::write(const CheckpointView& view) {
    const auto begin = std::chrono::steady_clock::now();
    try {
        write_checkpoint(directory_, view);
    } catch (const std::exception& problem) {
        if (remark_) remark_(std::string(problem.what()) + "; the run goes on without this checkpoint");
        return;
    }
    needed_.emplace_back();
    for (const auto& it : view.evaluated) needed_.back().push_back(it.first);
    if (needed_.size() > 2) needed_.erase(needed_.begin());
    // Which weights an older checkpoint of an earlier process needs only that one knows: they stay as long as it does.
    if (needed_.size() == 2) {
        std::vector<Version> all = needed_by_kept_;
        for (const auto& needed : needed_) all.insert(all.end(), needed.begin(), needed.end());
        prune_checkpoints(directory_, all, kept_);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::lock_guard lock(mutex_);
    ++written_;
    if (seconds > 0) bytes_per_s_ = std::max(1e3, static_cast<double>(view.bytes()) / seconds);
}

bool CheckpointWriter::fits(std::int64_t bytes, double seconds) const {
    const std::lock_guard lock(mutex_);
    return static_cast<double>(bytes) <= bytes_per_s_ * seconds;
}

void CheckpointWriter::drain() {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return !busy_; });
}

std::int64_t CheckpointWriter::written() const {
    const std::lock_guard lock(mutex_);
    return written_;
}

}  // namespace rubato::trace
