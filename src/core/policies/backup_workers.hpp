// backup-workers (Chen et al. 2016, algorithm 4): of lambda = N + backups workers an update takes the first N gradients
// that were computed on the version that it replaces. Later ones are dropped, and their workers start anew on the
// present weights. Staleness is 0 for every gradient that is applied. Without backups it is hardsync in which nobody
// waits for the round to be dealt.
#pragma once

#include "core/policies/decision.hpp"

#include <algorithm>
#include <string_view>

namespace rubato {

class BackupWorkers : public PolicyDefaults {
public:
    static constexpr std::string_view name = "backup-workers", kind = name;
    explicit BackupWorkers(int lambda = 1, int backups = 0)
        : lambda_(lambda), needed_(lambda - backups), busy_(lambda) {}
    PolicyTraits traits() const {
        return {.word = Word::broadcast, .batch_order = true, .drops = true, .gradients = needed_};
    }
    void on_resume() {
        busy_ = lambda_;
        arrived_.clear();
    }
    void on_idle(WorkerId, Orders&) { --busy_; }
    /// What it has given to the round stays there. Where nobody is left to wait for, the round makes do with that.
    void on_lost(WorkerId worker, Orders& orders) {
        if (const auto given = std::find(arrived_.begin(), arrived_.end(), worker); given != arrived_.end())
            *given = lost(worker);
        else
            --busy_;
        orders.fire = busy_ == 0 && !arrived_.empty();
    }
    /// One that has given to the round waits for its end: the server has room for one gradient of each.
    void on_back(WorkerId worker) {
        if (const auto given = std::find(arrived_.begin(), arrived_.end(), lost(worker)); given != arrived_.end())
            *given = worker;
        else
            ++busy_;
    }
    Ready on_ready(WorkerId worker) {
        return std::find(arrived_.begin(), arrived_.end(), worker) == arrived_.end() ? Ready::start : Ready::hold;
    }
    /// Where nobody else computes any more, as at the end of the data, the round makes do with what it has.
    Decision on_arrival(const Arrival& arrival, Orders& orders) {
        if (arrival.read_version < arrival.version) {
            orders.release.push_back(arrival.worker);
            return {.discard = true};
        }
        arrived_.push_back(arrival.worker);
        --busy_;
        return {.fire = static_cast<int>(arrived_.size()) == needed_ || busy_ == 0};
    }
    void on_applied(Time, Orders& orders) {
        std::erase_if(arrived_, [](WorkerId it) { return it < 0; });
        std::sort(arrived_.begin(), arrived_.end());
        busy_ += static_cast<int>(arrived_.size());
        orders.release.insert(orders.release.end(), arrived_.begin(), arrived_.end());
        arrived_.clear();
    }
    bool operator==(const BackupWorkers&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("lambda", self.lambda_);
        field("needed", self.needed_);
        field("busy", self.busy_);
        field("arrived", self.arrived_);
    }

private:
    static constexpr WorkerId lost(WorkerId worker) { return -1 - worker; }
    int lambda_ = 1;
    int needed_ = 1;
    int busy_ = 1;                   ///< workers that have a batch, or may ask for one
    std::vector<WorkerId> arrived_;  ///< in the present round; those who are lost since as lost(worker)
};

}  // namespace rubato
