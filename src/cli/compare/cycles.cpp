#include "cli/compare/cycles.hpp"

#include "trace/steady.hpp"

namespace rubato::cli {

Cycles::Cycles(const RecordedRun& run) : run_(run), cycles_(run.workers.size()) {
    Version last = 0;
    for (const auto& row : run.gradients) {
        cycles_[static_cast<std::size_t>(row.worker)].push_back({row, -1});
        last = std::max(last, row.apply_version + 1);
    }
    closers_.resize(static_cast<std::size_t>(last) + 1);
    for (auto& mine : cycles_) {
        std::sort(mine.begin(), mine.end(),
                  [](const Cycle& a, const Cycle& b) { return a.row.worker_seq < b.row.worker_seq; });
        for (std::size_t i = 0; i + 1 < mine.size(); ++i) mine[i].taken_ns = mine[i + 1].row.pull_ns;
    }
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

std::pair<Time, Time> Cycles::window() const {
    trace::SteadyWindow steady;
    for (const auto& row : run_.updates) steady.add(row);
    if (run_.updates.empty()) {
        for (const Closer& closer : closers_) {
            UpdateRow row;
            row.time_ns = closer.applied_ns;
            if (row.time_ns >= 0) steady.add(row);
        }
    }
    const auto edges = steady.edges();
    return {edges.begin.time_ns, edges.end.time_ns};
}

const Cycles::Closer* Cycles::made_by(const Cycle& cycle) const {
    const auto version = static_cast<std::size_t>(std::max<Version>(0, cycle.row.read_version));
    return version > 0 && version < closers_.size() ? &closers_[version] : nullptr;
}

const Cycle* Cycles::closer_of(const Cycle& waiter) const {
    const Closer* closer = made_by(waiter);
    if (!closer || closer->unknown || !closer->cycle || closer->cycle->row.worker == waiter.row.worker) return nullptr;
    const bool ends_wait = closer->cycle->taken_ns > waiter.row.pull_ns && closer->applied_ns <= waiter.row.begin_ns;
    return ends_wait ? closer->cycle : nullptr;
}

Time Cycles::release_ns(const Cycle& cycle) const {
    const Cycle* closer = closer_of(cycle);
    return closer ? closer->taken_ns : cycle.row.pull_ns;
}

Time Cycles::weights_ns(const Cycle& cycle) const {
    const Closer* closer = made_by(cycle);
    const Time made = closer && closer->applied_ns <= cycle.row.begin_ns ? closer->applied_ns : 0;
    return std::max(cycle.row.pull_ns, made);
}

}  // namespace rubato::cli
