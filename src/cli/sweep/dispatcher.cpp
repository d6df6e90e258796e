#include "cli/sweep/dispatcher.hpp"

#include "trace/recorder.hpp"

#include <poll.h>
#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace rubato::cli {

using Clock = std::chrono::steady_clock;

Dispatcher::Dispatcher(Board& board, Resolver& resolver, Results& results, Claims& claims,
                       const DispatchOptions& options)
    : board_(board), resolver_(resolver), results_(results), claims_(claims), options_(options) {}

int Dispatcher::running() const {
    return static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                          [](const auto& worker) { return worker && !worker->outstanding().empty(); }));
}

bool Dispatcher::run() {
    const auto begin = Clock::now();
    while (!*options_.interrupted) {
        write_hopeless();
        fill();
        if (options_.tick) options_.tick();
        if (running() > 0) {
            wait();
            seconds_ = std::chrono::duration<double>(Clock::now() - begin).count() * options_.jobs;
            continue;
        }
        if (board_.has_hopeless()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (board_.count(PointState::waiting) > 0) continue;
        if (board_.count(PointState::elsewhere) == 0) return true;
        look_at_left();
    }
    for (auto& worker : workers_)
        if (worker) collect(worker);
    write();
    return false;
}

/// Points that a worker has at once: about 20 ms of work, so that the way there and back costs nothing, and a share of
/// the rest that leaves something for the others.
std::size_t Dispatcher::wanted() const {
    if (finished_ == 0) return 1;
    const double each = seconds_ / static_cast<double>(finished_);
    const auto by_time = static_cast<std::size_t>(0.02 / std::max(each, 1e-6)) + 1;
    const std::size_t rest = board_.count(PointState::waiting) / (4 * static_cast<std::size_t>(options_.jobs)) + 1;
    return std::min({by_time, rest, std::size_t{64}});
}

void Dispatcher::fill() {
    workers_.resize(static_cast<std::size_t>(options_.jobs));
    for (auto& worker : workers_) {
        const std::size_t most = worker ? wanted() : 1;
        // A second helping before the first is eaten up, or the worker would wait for it.
        if (worker && worker->outstanding().size() > most / 2) continue;
        while ((!worker || worker->outstanding().size() < most) && hand_out(worker)) {
        }
    }
}

/// False where there is nothing for this worker.
bool Dispatcher::hand_out(std::unique_ptr<Worker>& worker) {
    const auto task = board_.next();
    if (!task) return false;
    if (worker && !worker->suits(*task)) {
        if (!worker->outstanding().empty()) {
            board_.put_back(*task);
            return false;
        }
        worker.reset();
    }
    if (!claim(*task)) return true;
    if (!worker) worker = std::make_unique<Worker>(resolver_, options_.point);
    worker->give(*task);
    return true;
}

/// Whoever holds the lock of a point has it alone; its row may have been written just before.
bool Dispatcher::claim(const Task& task) {
    if (!claims_.take(task.identity)) {
        board_.leave(task);
        return false;
    }
    if (results_.has_grown()) read_new();
    if (!board_.is_done(task)) return true;
    claims_.release(task.identity);
    return false;
}

/// What others had is done, still theirs, or free again because they are gone.
void Dispatcher::look_at_left() {
    read_new();
    bool any = false;
    for (const Task& task : board_.take_left()) {
        if (board_.is_done(task)) continue;
        const bool free = claims_.take(task.identity);
        if (free) claims_.release(task.identity);
        if (free)
            board_.put_back(task);
        else
            board_.leave(task);
        any |= free;
    }
    if (!any && board_.count(PointState::elsewhere) > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

void Dispatcher::wait() {
    std::vector<pollfd> ready;
    for (const auto& worker : workers_)
        if (worker && !worker->outstanding().empty()) ready.push_back({worker->descriptor(), POLLIN, 0});
    if (::poll(ready.data(), ready.size(), 200) <= 0) return;
    for (auto& worker : workers_) {
        const auto at = std::find_if(ready.begin(), ready.end(), [&](const pollfd& entry) {
            return worker && entry.fd == worker->descriptor() && entry.revents != 0;
        });
        if (at != ready.end()) collect(worker);
    }
    write();
}

void Dispatcher::collect(std::unique_ptr<Worker>& worker) {
    for (auto& [task, result] : worker->take()) {
        if (result.kind != PointResult::Kind::row) {
            write();
            throw trace::OutputError(result.text, result.kind == PointResult::Kind::output_full);
        }
        lines_ += result.text + "\n";
        written_.push_back(task);
        ++finished_;
    }
    if (worker->gone()) replace(worker);
}

/// The point that it was at has failed; those behind it were not begun.
void Dispatcher::replace(std::unique_ptr<Worker>& worker) {
    const std::deque<Task> lost = worker->outstanding();
    const std::string ending = worker->ending();
    worker.reset();
    for (std::size_t i = lost.size(); i-- > 1;) {
        claims_.release(lost[i].identity);
        board_.put_back(lost[i]);
    }
    if (lost.empty()) return;
    lines_ += failed_row(resolver_.at(lost.front().id), lost.front(), ending) + "\n";
    written_.push_back(lost.front());
}

void Dispatcher::write() {
    if (lines_.empty()) return;
    results_.append(claims_, std::exchange(lines_, {}),
                    [this](const ResultRow& row) { board_.take_later(results_, row); });
    for (const Task& task : std::exchange(written_, {})) claims_.release(task.identity);
}

void Dispatcher::write_hopeless() {
    for (const Task& task : board_.take_hopeless()) {
        const bool mine = claims_.take(task.identity);
        read_new();
        if (board_.is_done(task)) {
            if (mine) claims_.release(task.identity);
        } else if (mine) {
            const char* why = "no value could be tuned: every tuning run diverged or failed";
            Setting setting = resolver_.at(task.id);
            setting.cells = cells_without_choice(*board_.plan().sweep, std::move(setting.cells));
            lines_ += failed_row(setting, task, why) + "\n";
            written_.push_back(task);
        } else {
            board_.leave_hopeless(task);
        }
    }
    write();
}

void Dispatcher::read_new() {
    results_.read_new([this](const ResultRow& row) { board_.take_later(results_, row); });
}

}  // namespace rubato::cli
