// dssp (Zhao, An, Liu and Chen 2019, algorithms 1 and 2): ssp whose bound is lower_bound, but the fastest worker, where
// it is too far ahead, may be granted r* more iterations, at most r_max, by a controller that predicts when its push
// and one of the slowest worker come close together.
//
// What bounds the lead is a matter of the mode (D7): `strict` grants no more than keeps it within lower_bound + r_max;
// the literal modes ask the controller again as often as a grant is used up. docs/protocols.md has D1 to D9.
#pragma once

#include "core/policies/controller.hpp"
#include "core/policies/counts.hpp"
#include "core/policies/decision.hpp"
#include "core/policies/wait_lists.hpp"
#include "core/policies/worker_set.hpp"

#include <set>
#include <string_view>
#include <utility>

namespace rubato {

class Dssp : public PolicyDefaults {
public:
    static constexpr std::string_view name = "dssp", kind = name;
    explicit Dssp(int lambda = 1, const DsspSpec& spec = {});

    PolicyTraits traits() const { return {.word = Word::ok, .rounds = barrier(), .alone = true, .controller = true}; }
    void on_resume();
    Ready on_ready(WorkerId worker) { return waits(worker) ? Ready::hold : Ready::start; }
    void on_idle(WorkerId worker, Orders& orders);
    void on_lost(WorkerId worker, Orders& orders);
    void on_back(WorkerId worker);
    Decision on_arrival(const Arrival& arrival, Orders&) {
        pushed_ = arrival.worker;
        pushed_ns_ = arrival.now_ns;
        return {.fire = true};
    }
    void on_applied(Time now, Orders& orders);
    std::vector<Wait> waiting() const;

    bool operator==(const Dssp&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("spec", self.spec_);
        field("counts", self.counts_);
        field("table", self.table_);
        field("grants", self.grants_);
        field("held", self.held_ns_);
        field("by_count", self.by_count_);
        field("by_worker", self.by_worker_);
        if constexpr (!std::is_const_v<Self>) {
            self.sorter_ = WorkerSet(static_cast<int>(self.grants_.size()));
            self.rank_all();
        }
    }

private:
    static std::size_t at(WorkerId worker) { return static_cast<std::size_t>(worker); }
    /// Without grants and slack it is one, as ssp with bound 0 is, unless workers wait for single others.
    bool barrier() const {
        const bool by_count = spec_.mode != DsspSpec::Mode::literal_next && spec_.look_at_every_push;
        return spec_.lower_bound == 0 && spec_.r_max == 0 && (by_count || grants_.size() <= 2);
    }
    bool waits(WorkerId worker) const {
        return by_count_.key(worker) != WaitLists::nowhere || by_worker_.key(worker) != WaitLists::nowhere;
    }
    std::int64_t gap(WorkerId worker) const { return counts_.of(worker) - counts_.lowest(); }
    bool fastest(WorkerId worker) const {
        return counts_.of(worker) == counts_.highest() &&
               (spec_.ties_are_fastest || counts_.workers_at(counts_.highest()) == 1);
    }
    void note_push(WorkerId worker, Time now);
    bool may_go_on(WorkerId worker, Orders& orders);
    /// Asks the controller; the r* that it grants.
    std::int64_t consult(WorkerId worker, Orders& orders);
    void hold(WorkerId worker, Time now);
    /// Those whom the push of a worker, or its end, lets go. rose: the fewest pushes are more now.
    void let_go(WorkerId moved, bool rose, Time now, Orders& orders);
    /// Whom the controller predicts (D2), and whom waiting for a worker by name means.
    WorkerId slowest_by_rank();
    WorkerId slowest_by_count();
    void rank(WorkerId worker);
    void unrank(WorkerId worker);
    void rank_all();

    DsspSpec spec_;
    Counts counts_;
    PushTable table_;
    std::vector<std::int64_t> grants_;  ///< r_p, by worker
    std::vector<Time> held_ns_;  ///< by worker: since when it waits, or how long it did (negative) before its push
    WaitLists by_count_;         ///< who waits, by the fewest pushes that let it go
    WaitLists by_worker_;        ///< who waits, by the worker whose push it waits for
    /// Workers from the slowest on, where that is not by count and number alone.
    std::set<std::pair<std::pair<std::int64_t, std::int64_t>, WorkerId>> ranked_;
    WorkerSet sorter_;     ///< empty
    WorkerId pushed_ = 0;  ///< between a push and its update
    Time pushed_ns_ = 0;
};

}  // namespace rubato
