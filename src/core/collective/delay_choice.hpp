// How many iterations late gradients are applied, where that is chosen while the run goes on: the smallest delay that
// hides the communication, within a bound. Daily, Vishnu and Siegel 2016 name an adaptive delay and leave it open.
//
// After every `every` iterations a worker proposes: one more, where it waited for more than a fiftieth of its time and
// has not tried that; otherwise the smallest of those that it has tried whose iterations took at most a hundredth more
// than the shortest. The largest proposal of all workers, which an allreduce carries, is what all take. Since clusters
// change, all forget what they have tried now and then, and try one less: after ten proposals, or, where that was of no
// use, after twice as many as the time before, so that trying costs little.
#pragma once

#include "core/types.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rubato {

class DelayChoice {
public:
    DelayChoice() = default;
    explicit DelayChoice(int fixed) : delay_(fixed) {}
    /// Between 0 and most.
    DelayChoice(int most, int every) : every_(every), tried_ns_(static_cast<std::size_t>(most) + 1, 0) {}

    int delay() const { return delay_; }
    bool adapts() const { return every_ > 0; }
    /// Whether the allreduce of this iteration carries proposals.
    bool decides_in(std::int64_t iteration) const { return adapts() && iteration > 0 && iteration % every_ == 0; }
    /// An iteration took so long, of which the worker waited for allreduces.
    void note(Time took_ns, Time waited_ns) {
        took_ns_ += took_ns;
        waited_ns_ += waited_ns;
        ++noted_;
    }
    std::int32_t propose() {
        const bool looks = ++proposals_ >= interval_;
        if (looks) proposals_ = 0;
        if (noted_ == 0) return delay_;
        Time& here = tried_ns_[static_cast<std::size_t>(delay_)];
        here = std::max<Time>(1, took_ns_ / noted_);
        const bool waits = 50 * waited_ns_ > took_ns_;
        took_ns_ = waited_ns_ = noted_ = 0;
        if (looks) {
            const Time now = here;
            std::fill(tried_ns_.begin(), tried_ns_.end(), 0);
            here = now;
            if (delay_ > 0) return delay_ - 1;
        }
        const auto next = static_cast<std::size_t>(delay_) + 1;
        if (waits && next < tried_ns_.size() && tried_ns_[next] == 0) return static_cast<std::int32_t>(next);
        Time best = here;
        for (const Time tried : tried_ns_)
            if (tried > 0) best = std::min(best, tried);
        std::int32_t choice = 0;
        while (tried_ns_[static_cast<std::size_t>(choice)] == 0 ||
               100 * tried_ns_[static_cast<std::size_t>(choice)] > 101 * best)
            ++choice;
        return choice;
    }
    /// What all have agreed on, so that all look for less at the same time.
    void take(std::int32_t agreed) {
        if (agreed != delay_) took_ns_ = waited_ns_ = noted_ = 0;
        if (lowered_) interval_ = agreed > delay_ ? std::min(2 * interval_, longest) : soonest;
        lowered_ = agreed < delay_;
        delay_ = agreed;
    }
    bool operator==(const DelayChoice&) const = default;

private:
    static constexpr std::int64_t soonest = 10, longest = 320;

    int delay_ = 0;
    int every_ = 0;               ///< 0: fixed
    std::vector<Time> tried_ns_;  ///< by delay: an iteration; 0: not tried
    Time took_ns_ = 0, waited_ns_ = 0;
    std::int64_t noted_ = 0;
    std::int64_t proposals_ = 0, interval_ = soonest;  ///< since all looked for less, and until they will
    bool lowered_ = false;                             ///< at the last decision
};

}  // namespace rubato
