// bounded-delay (Li et al. 2014, section 3.4): iterations are numbered over all workers and assigned in turn, so worker
// w does w, w + lambda, w + 2 lambda, ...; iteration t may start once all up to t - k are done. k = 1 is one after the
// other. With the dependency `single` it waits for t - k alone, as the paper's example is drawn: weaker for more than
// two workers. Every gradient is applied as it arrives.
#pragma once

#include "core/policies/decision.hpp"

#include <algorithm>
#include <string_view>

namespace rubato {

class BoundedDelay : public PolicyDefaults {
public:
    static constexpr std::string_view name = "bounded-delay", kind = name;
    explicit BoundedDelay(int lambda = 1, std::int64_t k = 1, bool single = false)
        : k_(k), single_(single), done_of_(static_cast<std::size_t>(lambda), 0), state_(done_of_.size(), busy) {}
    PolicyTraits traits() const { return {.word = Word::ok, .alone = true}; }
    /// Workers that were idle may get a batch again; what others did without them is done.
    void on_resume() {
        for (WorkerId worker = 0; worker < lambda(); ++worker)
            if (state_[at(worker)] == gone)
                while (next(worker) < first_open_) ++done_of_[at(worker)];
        std::fill(state_.begin(), state_.end(), busy);
        gone_ = 0;
    }
    Ready on_ready(WorkerId worker) {
        const bool start = may_start(next(worker));
        state_[at(worker)] = start ? busy : held;
        return start ? Ready::start : Ready::hold;
    }
    /// The iterations of a worker without a batch are done without it.
    void on_idle(WorkerId worker, Orders& orders) {
        state_[at(worker)] = gone;
        ++gone_;
        const std::int64_t before = first_open_;
        move_on();
        release(before, next(worker), orders);
        // Those that waited for one of its iterations alone.
        for (WorkerId other = 0; single_ && other < lambda(); ++other)
            if (state_[at(other)] == held && owner(next(other) - k_) == worker) let_go(other, orders);
    }
    /// Its iterations are done without it, as those of a worker without a batch.
    void on_lost(WorkerId worker, Orders& orders) {
        if (state_[at(worker)] != gone) on_idle(worker, orders);
    }
    /// It goes on with the first of its iterations that was not done without it.
    void on_back(WorkerId worker) {
        if (state_[at(worker)] != gone) return;
        state_[at(worker)] = busy;
        --gone_;
        while (next(worker) < first_open_) ++done_of_[at(worker)];
        move_on();  // which stood still if nobody was left
    }
    Decision on_arrival(const Arrival& arrival, Orders&) {
        pushed_ = arrival.worker;
        return {.fire = true};
    }
    void on_applied(Time, Orders& orders) {
        const std::int64_t done = next(pushed_), before = first_open_;
        ++done_of_[at(pushed_)];
        move_on();
        state_[at(pushed_)] = held;
        if (may_start(next(pushed_))) let_go(pushed_, orders);
        release(before, done, orders);
        std::sort(orders.release.begin(), orders.release.end());
    }
    std::vector<Wait> waiting() const {
        std::vector<Wait> out;
        for (WorkerId worker = 0; worker < lambda(); ++worker)
            if (state_[at(worker)] == held) out.push_back({worker, owner(single_ ? next(worker) - k_ : first_open_)});
        return out;
    }
    bool operator==(const BoundedDelay&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("k", self.k_);
        field("single", self.single_);
        field("done", self.done_of_);
        field("state", self.state_);
        field("first_open", self.first_open_);
        field("idle", self.gone_);
    }

private:
    static constexpr std::uint8_t busy = 0, held = 1, gone = 2;
    static std::size_t at(WorkerId worker) { return static_cast<std::size_t>(worker); }
    WorkerId lambda() const { return static_cast<WorkerId>(done_of_.size()); }
    /// Iterations count from 0.
    std::int64_t next(WorkerId worker) const { return done_of_[at(worker)] * lambda() + worker; }
    WorkerId owner(std::int64_t iteration) const { return static_cast<WorkerId>(iteration % lambda()); }
    bool done(std::int64_t iteration) const {
        const WorkerId worker = owner(iteration);
        return iteration < next(worker) || state_[at(worker)] == gone;
    }
    bool may_start(std::int64_t iteration) const {
        const std::int64_t needed = iteration - k_;
        return needed < 0 || (single_ ? done(needed) : needed < first_open_);
    }
    /// A step for each iteration that is done: one a push, and those of idle workers.
    void move_on() {
        while (gone_ < lambda() && done(first_open_)) ++first_open_;
    }
    void let_go(WorkerId worker, Orders& orders) {
        state_[at(worker)] = busy;
        orders.release.push_back(worker);
    }
    /// Whoever waited for `done`, or for what has been done since all before `before` was.
    void release(std::int64_t before, std::int64_t done, Orders& orders) {
        const std::int64_t first = single_ ? done : before, last = single_ ? done : first_open_ - 1;
        for (std::int64_t iteration = first + k_; iteration <= last + k_; ++iteration)
            if (const WorkerId worker = owner(iteration); state_[at(worker)] == held && next(worker) == iteration)
                let_go(worker, orders);
    }

    std::int64_t k_ = 1;
    bool single_ = false;
    std::vector<std::int64_t> done_of_;  ///< iterations, by worker
    std::vector<std::uint8_t> state_;    ///< by worker
    std::int64_t first_open_ = 0;        ///< all before it are done
    WorkerId gone_ = 0;                  ///< workers
    WorkerId pushed_ = 0;                ///< between a push and its update
};

}  // namespace rubato
