// Writes checkpoints on a thread of its own, so that the run goes on meanwhile.
#pragma once

#include "trace/checkpoint.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace rubato::trace {

class CheckpointWriter {
public:
    /// base: program, backend and scenario of every head. resumed: the checkpoint that the run goes on from; null:
    /// none. keeps_resumed: it stays, since a log of events begins with it. remark: told in a line where one could not
    /// be written, from the writer's thread: the run goes on without it.
    CheckpointWriter(std::string run_directory, CheckpointHead base, const Checkpoint* resumed,
                     std::function<void(const std::string&)> remark, bool keeps_resumed = false);
    /// As drain().
    ~CheckpointWriter();
    CheckpointWriter(const CheckpointWriter&) = delete;
    CheckpointWriter& operator=(const CheckpointWriter&) = delete;

    /// Gives one to be written, once the one before is; done() is called, from the writer's thread, when its arrays are
    /// no longer needed.
    void submit(CheckpointView view, std::function<void()> done);
    /// Whether so many bytes can be expected to be written within `seconds`, by what the ones before took.
    bool fits(std::int64_t bytes, double seconds) const;
    /// Waits until what was given is written.
    void drain();
    /// How many were written.
    std::int64_t written() const;

private:
    void loop();
    void write(const CheckpointView& view);

    const std::string directory_;
    const CheckpointHead base_;
    const std::function<void(const std::string&)> remark_;
    std::optional<Version> kept_;               ///< the checkpoint that stays,
    std::vector<Version> needed_by_kept_;       ///< and the weights that it needs
    std::vector<std::vector<Version>> needed_;  ///< weights of pending evaluations, by the checkpoints of this process

    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::optional<CheckpointView> waits_;
    std::function<void()> done_;
    bool busy_ = false, closing_ = false;
    double bytes_per_s_ = 50e6;  ///< until one was written: that of a slow disk
    std::int64_t written_ = 0;
    std::thread thread_;  ///< last: starts when the rest is there
};

}  // namespace rubato::trace
