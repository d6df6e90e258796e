// The gradients of a run as cycles of its workers.
#pragma once

#include "cli/compare/recorded_run.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rubato::cli {

inline double to_seconds(Time ns) {
    return static_cast<double>(ns) * 1e-9;
}

/// One gradient of a worker, from when it began to wait for weights until its push was taken.
struct Cycle {
    GradientRow row;
    Time taken_ns = -1;  ///< the next wait began; -1: not known

    bool known() const { return row.pull_ns >= 0 && row.begin_ns >= row.pull_ns && taken_ns >= row.begin_ns; }
    /// Whether all of it lies in a stretch of time.
    bool within(std::pair<Time, Time> window) const {
        return known() && row.pull_ns >= window.first && taken_ns <= window.second;
    }
    /// A gradient that was cancelled computed to its end.
    Time push_ns() const { return row.push_ns >= 0 ? std::min(row.push_ns, taken_ns) : taken_ns; }
    Time wait() const { return row.begin_ns - row.pull_ns; }
    Time compute() const { return push_ns() - row.begin_ns; }
    Time push() const { return taken_ns - push_ns(); }
};

class Cycles {
public:
    /// Of a run with rows for all gradients, which must outlive this.
    explicit Cycles(const RecordedRun& run);
    Cycles(const Cycles&) = delete;
    Cycles& operator=(const Cycles&) = delete;

    const std::vector<std::vector<Cycle>>& by_worker() const { return cycles_; }
    /// Begin and end of the steady window, ns: that of the summary.
    std::pair<Time, Time> window() const;
    /// The contributor whose push was taken last of the update that ended the wait at the begin of a cycle, where that
    /// was another worker's and came later than the wait began; null otherwise.
    const Cycle* closer_of(const Cycle& waiter) const;
    /// From when on nobody else's gradient held the cycle up.
    Time release_ns(const Cycle& cycle) const;
    /// When the weights that a cycle computes on may have been sent at the earliest.
    Time weights_ns(const Cycle& cycle) const;

private:
    /// The contributor of an update whose push was taken last.
    struct Closer {
        const Cycle* cycle = nullptr;
        bool unknown = false;  ///< when some push was taken is not known
        Time applied_ns = -1;
    };
    const Closer* made_by(const Cycle& cycle) const;

    const RecordedRun& run_;
    std::vector<std::vector<Cycle>> cycles_;  ///< by worker
    std::vector<Closer> closers_;             ///< by the version that the update makes
};

}  // namespace rubato::cli
