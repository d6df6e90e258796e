// The synchronization controller of dssp (Zhao et al. 2019, algorithm 2): how many more iterations a fast worker should
// do so that its push and one of the slowest worker come close together. Pure: a table of times, and what follows of
// it.
#pragma once

#include "core/scenario.hpp"

#include <cstdint>
#include <type_traits>
#include <vector>

namespace rubato {

/// Of two workers: the last push, and the interval between the last two.
struct PushTimes {
    Time last_ns = -1, interval_ns = -1;
    bool known() const { return interval_ns >= 0; }
    bool operator==(const PushTimes&) const = default;
};

struct Prediction {
    std::int64_t r = 0;               ///< r*
    Time fast_ns = -1, slow_ns = -1;  ///< the two pushes; -1: nothing could be predicted
    bool operator==(const Prediction&) const = default;
};

/// argmin over r in [0, r_limit] of min over k in [0, r_max] of |Sim_s[k] - Sim_p[r]|, with
///     Sim_p[r] = last push of the fast worker + r * its interval,
///     Sim_s[k] = last push of the slowest worker + (k + 1) * its interval.
/// Where an interval is not known, or r_limit < 0, r* is 0. D3: among equals the smallest r, or the largest.
inline Prediction synchronize(const PushTimes& fast, const PushTimes& slow, std::int64_t r_limit, std::int64_t r_max,
                              bool smallest = true) {
    Prediction best;
    if (!fast.known() || !slow.known()) return best;
    Time least = -1;
    std::int64_t k = 0;
    for (std::int64_t r = 0; r <= r_limit; ++r) {
        const Time at = fast.last_ns + r * fast.interval_ns;
        const auto slow_at = [&](std::int64_t times) { return slow.last_ns + (times + 1) * slow.interval_ns; };
        const auto apart = [&](Time other) { return other > at ? other - at : at - other; };
        // Both rows rise, so the nearest k never falls.
        while (k < r_max && apart(slow_at(k + 1)) < apart(slow_at(k))) ++k;
        const Time distance = apart(slow_at(k));
        if (least >= 0 && (smallest ? distance >= least : distance > least)) continue;
        least = distance;
        best = {r, at, slow_at(k)};
    }
    return best;
}

/// The table of push times (A of the paper), by worker.
class PushTable {
public:
    explicit PushTable(int lambda = 0) : rows_(static_cast<std::size_t>(lambda)) {}
    /// from_start: before its first push a worker is taken to have pushed at 0 (D6). waited_ns: left out of the
    /// interval (D4).
    void push(WorkerId worker, Time now, Time waited_ns, bool from_start) {
        PushTimes& row = rows_[static_cast<std::size_t>(worker)];
        const Time before = row.last_ns >= 0 ? row.last_ns : from_start ? 0 : -1;
        row.interval_ns = before >= 0 ? now - before - waited_ns : -1;
        row.last_ns = now;
    }
    void forget(WorkerId worker) { rows_[static_cast<std::size_t>(worker)] = {}; }
    const PushTimes& of(WorkerId worker) const { return rows_[static_cast<std::size_t>(worker)]; }

    bool operator==(const PushTable&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        std::vector<Time> last, intervals;
        for (const auto& row : self.rows_) {
            last.push_back(row.last_ns);
            intervals.push_back(row.interval_ns);
        }
        field("last", last);
        field("intervals", intervals);
        if constexpr (!std::is_const_v<Self>) {
            self.rows_.resize(last.size());
            for (std::size_t i = 0; i < last.size(); ++i) self.rows_[i] = {last[i], intervals.at(i)};
        }
    }

private:
    std::vector<PushTimes> rows_;
};

}  // namespace rubato
