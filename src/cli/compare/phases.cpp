#include "cli/compare/phases.hpp"

#include "trace/steady.hpp"

#include <algorithm>
#include <numeric>

namespace rubato::cli {
namespace {

double to_seconds(Time ns) {
    return static_cast<double>(ns) * 1e-9;
}

/// One gradient of a worker, from when it began to wait for weights until its push was taken.
struct Cycle {
    GradientRow row;
    Time taken_ns = -1;  ///< the next wait began; -1: not known

    bool known() const { return row.pull_ns >= 0 && row.begin_ns >= row.pull_ns && taken_ns >= row.begin_ns; }
    /// A gradient that was cancelled computed to its end.
    Time push_ns() const { return row.push_ns >= 0 ? std::min(row.push_ns, taken_ns) : taken_ns; }
    Time wait() const { return row.begin_ns - row.pull_ns; }
    Time compute() const { return push_ns() - row.begin_ns; }
    Time push() const { return taken_ns - push_ns(); }
};

/// How the books of the whole run split waits and pushes.
struct Split {
    Seconds wait, push;  ///< fractions; each adds up to 1

    explicit Split(const trace::SavedWorker& books) {
        wait[Cause::pull_request] = books.pull_request_s;
        wait[Cause::pull_moving] = books.pull_moving_s;
        wait[Cause::policy_wait] = books.policy_wait_s;
        wait[Cause::apply_wait] = books.apply_wait_s;
        push[Cause::push_queued] = books.push_queued_s;
        push[Cause::push_moving] = books.push_moving_s;
        make_fractions(wait, Cause::pull_request);
        make_fractions(push, Cause::push_moving);
    }
    /// Without what the policy adds.
    Seconds pull() const {
        Seconds out = wait;
        out[Cause::policy_wait] = 0;
        make_fractions(out, Cause::pull_request);
        return out;
    }

private:
    static void make_fractions(Seconds& parts, Cause otherwise) {
        const double sum = parts.sum();
        if (sum > 0)
            for (double& part : parts) part /= sum;
        else
            parts[otherwise] = 1;
    }
};

class Follower {
public:
    explicit Follower(const RecordedRun& run) : run_(run), cycles_(run.workers.size()) {
        for (const auto& row : run.gradients) cycles_[static_cast<std::size_t>(row.worker)].push_back({row, -1});
        for (auto& mine : cycles_) {
            std::sort(mine.begin(), mine.end(),
                      [](const Cycle& a, const Cycle& b) { return a.row.worker_seq < b.row.worker_seq; });
            for (std::size_t i = 0; i + 1 < mine.size(); ++i) mine[i].taken_ns = mine[i + 1].row.pull_ns;
        }
        find_closers();
        for (const auto& books : run.workers) splits_.emplace_back(books);
    }

    /// Begin and end of the steady window, ns.
    std::pair<Time, Time> window() const {
        trace::SteadyWindow steady;
        if (!run_.updates.empty()) {
            for (const auto& row : run_.updates) steady.add(row);
        } else {
            for (const Closer& closer : closers_) {
                UpdateRow row;
                row.time_ns = closer.applied_ns;
                if (row.time_ns >= 0) steady.add(row);
            }
        }
        const auto edges = steady.edges();
        return {edges.begin.time_ns, edges.end.time_ns};
    }

    WorkerPhases phases(WorkerId worker, Time begin_ns, Time end_ns) const;

private:
    /// The contributor of an update whose push was taken last.
    struct Closer {
        const Cycle* cycle = nullptr;
        bool unknown = false;  ///< when some push was taken is not known
        Time applied_ns = -1;
    };

    void find_closers();
    const Cycle* closer_of(const Cycle& waiter) const;
    Time release_ns(const Cycle& cycle) const;
    Seconds excess(const Cycle& other, const Cycle& mine) const;
    double idle(const std::vector<Cycle>& mine, Time begin_ns, Time end_ns) const;

    const RecordedRun& run_;
    std::vector<std::vector<Cycle>> cycles_;  ///< by worker
    std::vector<Closer> closers_;             ///< by the version that the update makes
    std::vector<Split> splits_;
};

void Follower::find_closers() {
    Version last = 0;
    for (const auto& mine : cycles_)
        for (const auto& cycle : mine) last = std::max(last, cycle.row.apply_version + 1);
    closers_.resize(static_cast<std::size_t>(last) + 1);
    for (const auto& mine : cycles_) {
        for (const auto& cycle : mine) {
            if (cycle.row.outcome != Outcome::applied || cycle.row.apply_version < 0) continue;
            Closer& closer = closers_[static_cast<std::size_t>(cycle.row.apply_version) + 1];
            closer.applied_ns = cycle.row.applied_ns;
            closer.unknown = closer.unknown || !cycle.known();
            if (!closer.cycle || cycle.taken_ns > closer.cycle->taken_ns) closer.cycle = &cycle;
        }
    }
}

/// Whom the wait at the begin of a cycle was for; null where it was for nobody else.
const Cycle* Follower::closer_of(const Cycle& waiter) const {
    const auto version = static_cast<std::size_t>(std::max<Version>(0, waiter.row.read_version));
    if (version == 0 || version >= closers_.size()) return nullptr;
    const Closer& closer = closers_[version];
    if (closer.unknown || !closer.cycle || closer.cycle->row.worker == waiter.row.worker) return nullptr;
    const bool ends_wait = closer.cycle->taken_ns > waiter.row.pull_ns && closer.applied_ns <= waiter.row.begin_ns;
    return ends_wait ? closer.cycle : nullptr;
}

/// From when on nobody else's work held the cycle up.
Time Follower::release_ns(const Cycle& cycle) const {
    const Cycle* closer = closer_of(cycle);
    return closer ? closer->taken_ns : cycle.row.pull_ns;
}

/// By how much the phases of one cycle took longer than those of another, where they did.
Seconds Follower::excess(const Cycle& other, const Cycle& mine) const {
    const Split& split = splits_[static_cast<std::size_t>(other.row.worker)];
    const auto longer = [](Time a, Time b) { return to_seconds(std::max<Time>(0, a - b)); };
    Seconds out;
    out[Cause::compute] = longer(other.compute(), mine.compute());
    out.add(split.push, longer(other.push(), mine.push()));
    out.add(split.pull(), longer(other.row.begin_ns - release_ns(other), mine.row.begin_ns - release_ns(mine)));
    return out;
}

/// Seconds of the window before a worker's first work and after its last. What is shorter than a cycle is no idling but
/// a cycle that crosses the edge.
double Follower::idle(const std::vector<Cycle>& mine, Time begin_ns, Time end_ns) const {
    const GradientRow& last = mine.back().row;
    const Time ends = std::max({last.applied_ns, last.push_ns, last.end_ns, last.begin_ns});
    const auto cycle = (ends - mine.front().row.pull_ns) / static_cast<Time>(mine.size());
    double out = 0;
    for (const Time gap : {mine.front().row.pull_ns - begin_ns, end_ns - std::max(ends, begin_ns)})
        if (gap > 2 * cycle) out += to_seconds(gap);
    return out;
}

WorkerPhases Follower::phases(WorkerId worker, Time begin_ns, Time end_ns) const {
    const auto& mine = cycles_[static_cast<std::size_t>(worker)];
    const Split& split = splits_[static_cast<std::size_t>(worker)];
    WorkerPhases out;
    double waited = 0;  // for others, as far as rows tell
    std::int64_t applied = 0;
    std::map<WorkerId, Seconds> charged;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        const Cycle& cycle = mine[i];
        if (!cycle.known() || cycle.row.pull_ns < begin_ns || cycle.taken_ns > end_ns) continue;
        applied += cycle.row.outcome == Outcome::applied;
        out.spent[Cause::compute] += to_seconds(cycle.compute());
        out.spent.add(split.push, to_seconds(cycle.push()));
        out.spent.add(split.wait, to_seconds(cycle.wait()));
        const Cycle* closer = i > 0 && mine[i - 1].known() ? closer_of(cycle) : nullptr;
        if (!closer) continue;
        const double wait = to_seconds(closer->taken_ns - cycle.row.pull_ns);
        const Seconds parts = excess(*closer, mine[i - 1]);
        waited += wait;
        if (parts.sum() > 0) charged[closer->row.worker].add(parts, wait / parts.sum());
    }
    if (applied == 0) return out;
    out.any = true;
    out.spent[Cause::idle] = idle(mine, begin_ns, end_ns);
    for (double& part : out.spent) part /= static_cast<double>(applied);
    // The books know how long the policy held the worker back; the rows, for whom.
    const double policy = out.spent[Cause::policy_wait];
    if (policy > 0)
        for (const auto& [other, parts] : charged) out.waited_for[other].add(parts, std::min(1.0, policy / waited));
    return out;
}

WorkerPhases from_books(const trace::SavedWorker& books) {
    WorkerPhases out;
    out.any = books.ended && books.applied > 0;
    if (!out.any) return out;
    out.spent[Cause::compute] = books.compute_s;
    out.spent[Cause::push_queued] = books.push_queued_s;
    out.spent[Cause::push_moving] = books.push_moving_s;
    out.spent[Cause::pull_request] = books.pull_request_s;
    out.spent[Cause::pull_moving] = books.pull_moving_s;
    out.spent[Cause::policy_wait] = books.policy_wait_s;
    out.spent[Cause::apply_wait] = books.apply_wait_s;
    out.spent[Cause::idle] = books.idle_s;
    for (double& part : out.spent) part /= static_cast<double>(books.applied);
    return out;
}

}  // namespace

double Seconds::sum() const {
    return std::accumulate(begin(), end(), 0.0);
}

void Seconds::add(const Seconds& other, double factor) {
    for (std::size_t i = 0; i < causes; ++i) at(i) += factor * other.at(i);
}

RunPhases phases_of(const RecordedRun& run) {
    RunPhases out;
    if (!run.gradients.empty()) {
        const Follower follower(run);
        const auto [begin_ns, end_ns] = follower.window();
        for (WorkerId worker = 0; worker < run.lambda(); ++worker)
            out.workers.push_back(follower.phases(worker, begin_ns, end_ns));
        out.followed = out.steady = true;
    }
    // A worker that only a whole run has a gradient of: the window is too short for this run.
    const auto missed = [&] {
        for (std::size_t i = 0; i < out.workers.size(); ++i)
            if (!out.workers[i].any && run.workers[i].applied > 0) return true;
        return out.workers.empty();
    };
    if (missed()) {
        out = {};
        for (const auto& books : run.workers) out.workers.push_back(from_books(books));
    }
    return out;
}

}  // namespace rubato::cli
