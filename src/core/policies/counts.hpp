// How often each worker has pushed, and who is behind: the extremes of counts that grow by one.
#pragma once

#include "core/types.hpp"

#include <deque>
#include <type_traits>
#include <vector>

namespace rubato {

/// t_i of bounded-staleness policies (Ho et al. 2013). Minimum and maximum are kept by numbers of workers at each count
/// between them, so a push costs the same however many workers there are. Retired workers count for neither.
class Counts {
public:
    explicit Counts(int lambda = 0) : counts_(static_cast<std::size_t>(lambda), 0) { rebuild(); }

    int size() const { return static_cast<int>(counts_.size()); }
    std::int64_t of(WorkerId worker) const { return counts_[at(worker)]; }
    bool retired(WorkerId worker) const { return !gone_.empty() && gone_[at(worker)] != 0; }
    /// Of those that have not retired; 0 where all have.
    std::int64_t lowest() const { return lowest_; }
    std::int64_t highest() const { return lowest_ + static_cast<std::int64_t>(workers_.size()) - (empty() ? 0 : 1); }
    bool empty() const { return workers_.empty(); }
    /// How many have this count, which is between lowest and highest.
    int workers_at(std::int64_t count) const { return workers_[static_cast<std::size_t>(count - lowest_)]; }

    /// Counts a push; whether the lowest count rose.
    bool push(WorkerId worker) {
        const auto place = static_cast<std::size_t>(counts_[at(worker)]++ - lowest_);
        if (retired(worker)) return false;
        if (place + 1 == workers_.size()) workers_.push_back(0);
        ++workers_[place + 1];
        --workers_[place];
        return trim();
    }
    /// Nobody waits for this worker any more; whether the lowest count rose.
    bool retire(WorkerId worker) {
        if (retired(worker)) return false;
        if (gone_.empty()) gone_.resize(counts_.size(), 0);
        gone_[at(worker)] = 1;
        --workers_[static_cast<std::size_t>(of(worker) - lowest_)];
        return trim();
    }
    /// One that has retired is with the others again, at the lowest count at least: nobody waits for what it missed.
    void revive(WorkerId worker) {
        if (!retired(worker)) return;
        if (!empty() && of(worker) < lowest_) counts_[at(worker)] = lowest_;
        gone_[at(worker)] = 0;
        rebuild();
    }
    /// Those who have retired are with the others again, at the lowest count at least.
    void revive() {
        for (std::size_t i = 0; i < gone_.size(); ++i)
            if (gone_[i] != 0 && counts_[i] < lowest_) counts_[i] = lowest_;
        gone_.clear();
        rebuild();
    }
    /// A worker of the lowest count, the one with the lowest number. Amortized over the pushes until that count rises,
    /// one for each worker at least, it costs a step a push. -1: all have retired.
    WorkerId slowest() {
        if (empty()) return -1;
        while (counts_[at(hint_)] != lowest_ || retired(hint_)) ++hint_;
        return hint_;
    }
    /// The same for those who cannot spare the hint.
    WorkerId slowest() const {
        Counts copy = *this;
        return copy.slowest();
    }

    bool operator==(const Counts&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("counts", self.counts_);
        field("gone", self.gone_);
        if constexpr (!std::is_const_v<Self>) self.rebuild();
    }

private:
    static std::size_t at(WorkerId worker) { return static_cast<std::size_t>(worker); }
    bool trim() {
        const std::int64_t before = lowest_;
        while (!workers_.empty() && workers_.back() == 0) workers_.pop_back();
        while (!workers_.empty() && workers_.front() == 0) {
            workers_.pop_front();
            ++lowest_;
        }
        if (lowest_ != before) hint_ = 0;
        return lowest_ != before || workers_.empty();
    }
    void rebuild() {
        workers_.clear();
        lowest_ = 0;
        hint_ = 0;
        bool any = false;
        for (std::size_t i = 0; i < counts_.size(); ++i)
            if (gone_.empty() || gone_[i] == 0) {
                lowest_ = any && lowest_ < counts_[i] ? lowest_ : counts_[i];
                any = true;
            }
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (!gone_.empty() && gone_[i] != 0) continue;
            const auto place = static_cast<std::size_t>(counts_[i] - lowest_);
            if (place >= workers_.size()) workers_.resize(place + 1, 0);
            ++workers_[place];
        }
    }

    std::vector<std::int64_t> counts_;  ///< by worker
    std::vector<std::uint8_t> gone_;    ///< by worker: has retired; empty: nobody has
    std::int64_t lowest_ = 0;
    std::deque<std::int32_t> workers_;  ///< that have each count from the lowest on
    WorkerId hint_ = 0;                 ///< nobody before it has the lowest count
};

}  // namespace rubato
