// ssp (Ho et al. 2013; Zhao et al. 2019, section 2): every gradient is applied as it arrives; worker p, with t_p pushes
// so far, goes on once t_p - min(t) <= bound. So an iteration starts at most `bound` ahead of the slowest worker, and
// the slowest never waits. bound 0 is a barrier, and its batches are dealt in rounds, as those of bsp; no bound is asp.
// One that waits is bound + 1 ahead, or more where it comes back with more pushes than others that came back before it.
#pragma once

#include "core/policies/counts.hpp"
#include "core/policies/decision.hpp"
#include "core/policies/wait_lists.hpp"
#include "core/policies/worker_set.hpp"

#include <optional>
#include <string_view>
#include <type_traits>

namespace rubato {

class Ssp : public PolicyDefaults {
public:
    static constexpr std::string_view name = "ssp", kind = name;
    explicit Ssp(int lambda = 1, std::optional<std::int64_t> bound = std::nullopt) : bound_(bound) {
        if (!bound) return;
        counts_ = Counts(lambda);
        waiting_ = WaitLists(lambda);
        sorter_ = WorkerSet(lambda);
    }
    PolicyTraits traits() const { return {.word = Word::ok, .rounds = bound_ == 0, .alone = true}; }
    void on_resume() {
        counts_.revive();
        // Of those who were away some may be too far ahead; of the others only those who wait are.
        for (WorkerId worker = 0; worker < waiting_.size(); ++worker)
            if (ahead(worker) && waiting_.key(worker) == WaitLists::nowhere) wait(worker);
    }
    Ready on_ready(WorkerId worker) { return ahead(worker) ? Ready::hold : Ready::start; }
    /// A worker without a batch is waited for no longer; in a round it has done its part.
    void on_idle(WorkerId worker, Orders& orders) {
        if (!bound_) return;
        if (*bound_ == 0)
            counts_.push(worker);
        else if (counts_.retire(worker))
            let_go(orders);
    }
    void on_lost(WorkerId worker, Orders& orders) {
        if (!bound_) return;
        waiting_.remove(worker);
        if (counts_.retire(worker)) let_go(orders);
    }
    void on_back(WorkerId worker) {
        if (!bound_) return;
        counts_.revive(worker);
        if (ahead(worker)) wait(worker);
    }
    Decision on_arrival(const Arrival& arrival, Orders&) {
        pushed_ = arrival.worker;
        return {.fire = true};
    }
    void on_applied(Time, Orders& orders) {
        if (!bound_) return orders.release.push_back(pushed_);
        const bool rose = counts_.push(pushed_);
        if (ahead(pushed_))
            wait(pushed_);
        else
            orders.release.push_back(pushed_);
        if (rose) let_go(orders);
    }
    std::vector<Wait> waiting() const {
        std::vector<Wait> out;
        const WorkerId slowest = counts_.slowest();
        for (const WorkerId worker : members().members()) out.push_back({worker, slowest});
        return out;
    }
    bool operator==(const Ssp&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("bound", self.bound_);
        field("counts", self.counts_);
        WorkerSet waiting = self.members();
        field("waiting", waiting);
        if constexpr (!std::is_const_v<Self>) {
            const int lambda = self.bound_ ? self.counts_.size() : 0;
            self.waiting_ = WaitLists(lambda);
            self.sorter_ = WorkerSet(lambda);
            for (const WorkerId worker : waiting.members()) self.wait(worker);
        }
    }

private:
    bool ahead(WorkerId worker) const { return bound_ && counts_.of(worker) - counts_.lowest() > *bound_; }
    void wait(WorkerId worker) { waiting_.add(counts_.of(worker) - *bound_, worker); }
    WorkerSet members() const {
        WorkerSet out(waiting_.size());
        for (WorkerId worker = 0; worker < waiting_.size(); ++worker)
            if (waiting_.key(worker) != WaitLists::nowhere) out.add(worker);
        return out;
    }
    /// Those who are near enough, now that the slowest has moved.
    void let_go(Orders& orders) {
        waiting_.take_until(counts_.lowest(), orders.release);
        sorter_.sort(orders.release);
        if (*bound_ > 0) return;
        orders.release.clear();
        orders.round = true;
    }

    std::optional<std::int64_t> bound_;
    Counts counts_;
    WaitLists waiting_;    ///< by the fewest pushes that let them go
    WorkerSet sorter_;     ///< empty
    WorkerId pushed_ = 0;  ///< between a push and its update
};

}  // namespace rubato
