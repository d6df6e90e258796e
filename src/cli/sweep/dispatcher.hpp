// Hands points out to workers and writes what they find, beside any number of other processes that do the same.
#pragma once

#include "cli/sweep/worker.hpp"

#include <atomic>
#include <functional>
#include <memory>

namespace rubato::cli {

struct DispatchOptions {
    int jobs = 1;  ///< worker processes
    PointOptions point;
    const std::atomic<bool>* interrupted = nullptr;
    std::function<void()> tick;  ///< now and then, for progress
};

class Dispatcher {
public:
    Dispatcher(Board& board, Resolver& resolver, Results& results, Claims& claims, const DispatchOptions& options);

    /// Until every point of the board is done, by this process or another. False where a signal came before. Throws
    /// trace::OutputError where rows cannot be written; no row that was written is lost then.
    bool run();
    int running() const;

private:
    void fill();
    bool hand_out(std::unique_ptr<Worker>& worker);
    bool claim(const Task& task);
    void look_at_left();
    void wait();
    void collect(std::unique_ptr<Worker>& worker);
    void replace(std::unique_ptr<Worker>& worker);
    void write();
    void write_hopeless();
    void read_new();
    std::size_t wanted() const;

    Board& board_;
    Resolver& resolver_;
    Results& results_;
    Claims& claims_;
    DispatchOptions options_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::string lines_;          ///< rows that are to be written
    std::vector<Task> written_;  ///< their tasks
    std::size_t finished_ = 0;   ///< results so far
    double seconds_ = 0;         ///< and how long they took, all workers together
};

}  // namespace rubato::cli
