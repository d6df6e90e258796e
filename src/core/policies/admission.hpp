// admission: asynchronous updates of c gradients whose staleness never exceeds a bound, as asynchronous reinforcement
// learning keeps what it learns from fresh. Strict: it holds for every gradient that is applied, also after a resume.
//
// pace:     a worker may not start where its gradient, or one under way, could come too late: even if all that is under
//           way arrived before the oldest. It waits for the oldest.
// discard:  what comes too late is dropped. That favours fast workers: workers.csv counts by worker.
// withhold: what has come waits while an update would make a gradient under way too stale; then one update takes all of
//           it. A worker does not wait, unless the bound is 0.
#pragma once

#include "core/policies/decision.hpp"
#include "core/policies/wait_lists.hpp"
#include "core/scenario.hpp"

#include <algorithm>
#include <string_view>

namespace rubato {

class Admission : public PolicyDefaults {
public:
    static constexpr std::string_view name = "admission", kind = name;
    /// gradients: c >= 1, of one update (withhold: at least). bound >= 0.
    explicit Admission(int lambda = 1, Admit admit = Admit::pace, std::int64_t bound = 0, int gradients = 1)
        : admit_(admit), bound_(bound), c_(gradients), computing_(lambda) {}
    PolicyTraits traits() const {
        return {.asks = true,
                .alone = c_ == 1 && admit_ != Admit::withhold,
                .drops = admit_ == Admit::discard,
                .minds_staleness = true,
                .gradients = c_};
    }
    /// What was under way is computed again, on the present version, and asks anew.
    void on_resume() {
        computing_ = WaitLists(computing_.size());
        under_way_ = arrived_ = 0;
        waiting_.clear();
    }
    Ready on_ready(WorkerId worker) {
        if (!may_start()) {
            waiting_.push_back(worker);
            return Ready::hold;
        }
        start(worker);
        return Ready::start;
    }
    void on_idle(WorkerId worker, Orders& orders) {
        stop(worker);
        release(orders);
    }
    /// What was withheld for its sake need wait no longer.
    void on_lost(WorkerId worker, Orders& orders) {
        stop(worker);
        std::erase(waiting_, worker);
        orders.fire = admit_ == Admit::withhold && arrived_ >= c_ && spares();
        if (!orders.fire) release(orders);
    }
    Decision on_arrival(const Arrival& arrival, Orders& orders) {
        stop(arrival.worker);
        if (arrival.version - arrival.read_version > bound_) {
            release(orders);
            return {.discard = true};
        }
        ++arrived_;
        if (arrived_ >= c_ && spares()) return {.fire = true};
        release(orders);
        return {};
    }
    void on_applied(Time, Orders& orders) {
        ++version_;
        arrived_ = 0;
        release(orders);
    }
    std::vector<Wait> waiting() const {
        std::vector<Wait> out;
        const WorkerId oldest = computing_.empty() ? -1 : computing_.any_of_lowest();
        for (const WorkerId worker : waiting_) out.push_back({worker, oldest});
        return out;
    }
    bool operator==(const Admission&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("admit", self.admit_);
        field("bound", self.bound_);
        field("c", self.c_);
        field("version", self.version_);
        field("arrived", self.arrived_);
        field("under_way", self.under_way_);
        field("computing", self.computing_);
        field("waiting", self.waiting_);
    }

private:
    /// Whether an update now leaves nothing under way too stale.
    bool spares() const {
        return admit_ != Admit::withhold || computing_.empty() || version_ + 1 <= computing_.lowest() + bound_;
    }
    /// Whether one more gradient on the present version keeps the bound, whatever the order of arrivals.
    bool may_start() const {
        if (admit_ == Admit::discard) return true;
        if (admit_ == Admit::withhold) return bound_ > 0 || arrived_ == 0 || arrived_ + under_way_ < c_;
        const Version oldest = computing_.empty() ? version_ : computing_.lowest();
        return version_ + (arrived_ + under_way_) / c_ <= oldest + bound_;
    }
    void start(WorkerId worker) {
        computing_.add(version_, worker);
        ++under_way_;
    }
    void stop(WorkerId worker) {
        if (computing_.key(worker) == WaitLists::nowhere) return;
        computing_.remove(worker);
        --under_way_;
    }
    /// As many as may start, in the order in which they asked.
    void release(Orders& orders) {
        std::size_t let_go = 0;
        for (; let_go < waiting_.size() && may_start(); ++let_go) {
            start(waiting_[let_go]);
            orders.release.push_back(waiting_[let_go]);
        }
        waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(let_go));
        std::sort(orders.release.begin(), orders.release.end());
    }

    Admit admit_ = Admit::pace;
    std::int64_t bound_ = 0;
    int c_ = 1;
    Version version_ = 0;
    std::int64_t arrived_ = 0;    ///< taken in, in no update yet
    std::int64_t under_way_ = 0;  ///< workers in computing_
    WaitLists computing_;         ///< workers by the version that they compute on
    std::vector<WorkerId> waiting_;
};

}  // namespace rubato
