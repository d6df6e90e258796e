// The processes that run points, and what passes between them and their parent.
#pragma once

#include "cli/sweep/run_point.hpp"

#include <sys/types.h>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

/// A forked process that takes tasks and gives results, in order. Points on SimGrid's network get a process each,
/// forked after the platform is built, since SimGrid bears one run a process; all others run one after another in the
/// worker itself. A fork must come before this process has any thread.
class Worker {
public:
    /// Forks. `resolver` is what the child resolves with. Throws std::system_error where no process can be had.
    Worker(Resolver& resolver, const PointOptions& options);
    /// Kills the process, and what it runs, if it is still there.
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    int descriptor() const { return socket_; }
    /// Whether the task can run there: not beside another platform (Task::apart), and no fork after a run in the worker
    /// itself, which may have left threads of a library behind.
    bool suits(const Task& task) const;
    void give(const Task& task);
    /// Tasks that were given and have no result yet, in order.
    const std::deque<Task>& outstanding() const { return outstanding_; }
    /// Results that have come. Call when the descriptor is readable; never blocks.
    std::vector<std::pair<Task, PointResult>> take();
    /// Whether the process has ended; found out by take().
    bool gone() const { return gone_; }
    /// How it ended, after gone(): "killed by signal 11 (Segmentation fault)". Waits for it.
    std::string ending();

private:
    pid_t process_ = -1;
    int socket_ = -1;
    bool gone_ = false;
    std::uint64_t platform_ = 0;
    bool had_apart_ = false, had_own_runs_ = false;
    std::deque<Task> outstanding_;
    std::string received_;
};

}  // namespace rubato::cli
