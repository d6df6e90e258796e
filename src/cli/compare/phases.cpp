#include "cli/compare/phases.hpp"

#include "cli/compare/cycles.hpp"

#include <algorithm>
#include <numeric>

namespace rubato::cli {
namespace {

/// How the books of the whole run split waits and pushes.
struct Split {
    Seconds wait, push;  ///< fractions; each adds up to 1

    explicit Split(const SavedWorker& books) {
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
    explicit Follower(const RecordedRun& run) : cycles_(run), window_(cycles_.window()) {
        for (const auto& books : run.workers) splits_.emplace_back(books);
    }

    WorkerPhases phases(WorkerId worker) const;

private:
    Seconds excess(const Cycle& other, const Cycle& mine) const;
    double idle(const std::vector<Cycle>& mine) const;

    Cycles cycles_;
    std::pair<Time, Time> window_;
    std::vector<Split> splits_;
};

/// By how much the phases of one cycle took longer than those of another, where they did.
Seconds Follower::excess(const Cycle& other, const Cycle& mine) const {
    const Split& split = splits_[static_cast<std::size_t>(other.row.worker)];
    const auto longer = [](Time a, Time b) { return to_seconds(std::max<Time>(0, a - b)); };
    Seconds out;
    out[Cause::compute] = longer(other.compute(), mine.compute());
    out.add(split.push, longer(other.push(), mine.push()));
    out.add(split.pull(),
            longer(other.row.begin_ns - cycles_.release_ns(other), mine.row.begin_ns - cycles_.release_ns(mine)));
    return out;
}

/// Seconds of the window before a worker's first work and after its last. What is shorter than a cycle is no idling but
/// a cycle that crosses the edge.
double Follower::idle(const std::vector<Cycle>& mine) const {
    const GradientRow& last = mine.back().row;
    const Time ends = std::max({last.applied_ns, last.push_ns, last.end_ns, last.begin_ns});
    const auto cycle = (ends - mine.front().row.pull_ns) / static_cast<Time>(mine.size());
    double out = 0;
    for (const Time gap : {mine.front().row.pull_ns - window_.first, window_.second - std::max(ends, window_.first)})
        if (gap > 2 * cycle) out += to_seconds(gap);
    return out;
}

WorkerPhases Follower::phases(WorkerId worker) const {
    const auto& mine = cycles_.by_worker()[static_cast<std::size_t>(worker)];
    const Split& split = splits_[static_cast<std::size_t>(worker)];
    WorkerPhases out;
    double waited = 0;  // for others, as far as rows tell
    std::int64_t applied = 0;
    std::map<WorkerId, Seconds> charged;
    for (std::size_t i = 0; i < mine.size(); ++i) {
        const Cycle& cycle = mine[i];
        if (!cycle.within(window_)) continue;
        if (cycle.row.outcome == Outcome::applied) applied += cycle.row.count;
        out.spent[Cause::compute] += to_seconds(cycle.compute());
        out.spent.add(split.push, to_seconds(cycle.push()));
        out.spent.add(split.wait, to_seconds(cycle.wait()));
        const Cycle* closer = i > 0 && mine[i - 1].known() ? cycles_.closer_of(cycle) : nullptr;
        if (!closer) continue;
        const double wait = to_seconds(closer->taken_ns - cycle.row.pull_ns);
        const Seconds parts = excess(*closer, mine[i - 1]);
        waited += wait;
        if (parts.sum() > 0) charged[closer->row.worker].add(parts, wait / parts.sum());
    }
    if (applied == 0 || out.spent.sum() <= 0) return out;
    out.any = true;
    out.spent[Cause::idle] = idle(mine);
    for (double& part : out.spent) part /= static_cast<double>(applied);
    // The books know how long the policy held the worker back; the rows, for whom, and not for longer than they say.
    const double policy = out.spent[Cause::policy_wait];
    if (policy > 0)
        for (const auto& [other, parts] : charged)
            out.waited_for[other].add(parts, std::min(1 / static_cast<double>(applied), policy / waited));
    return out;
}

WorkerPhases from_books(const SavedWorker& books) {
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
    out.any = out.spent.sum() > 0;
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
    // Rows tell when an overlapping worker pushed and pulled, and not how much of that its computation waited for.
    const Node* workers = run.scenario.find("workers");
    const Node* pipeline = workers ? workers->find("pipeline") : nullptr;
    const bool overlaps = pipeline && pipeline->text == "overlap";
    if (!run.gradients.empty() && !overlaps) {
        const Follower follower(run);
        for (WorkerId worker = 0; worker < run.lambda(); ++worker) out.workers.push_back(follower.phases(worker));
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
