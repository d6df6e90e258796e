// ringmaster (Maranjyan, Tyurin and Richtarik 2025, algorithms 4 and 5): a gradient is applied as it arrives if its
// staleness is below the threshold R, and dropped otherwise. With `cancel` (algorithm 5) a gradient that has become too
// stale while it is being computed is given up at once, and its worker starts anew.
#pragma once

#include "core/policies/decision.hpp"
#include "core/policies/wait_lists.hpp"

#include <string_view>

namespace rubato {

class Ringmaster : public PolicyDefaults {
public:
    static constexpr std::string_view name = "ringmaster", kind = name;
    explicit Ringmaster(int lambda = 1, std::int64_t threshold = 1, bool cancel = false)
        : threshold_(threshold), cancel_(cancel), computing_(cancel ? lambda : 0) {}
    PolicyTraits traits() const { return {.asks = cancel_, .alone = true, .drops = true}; }
    /// What was under way is computed again, on the present version.
    void on_resume() { computing_ = WaitLists(computing_.size()); }
    Ready on_ready(WorkerId worker) {
        if (cancel_) computing_.add(version_, worker);
        return Ready::start;
    }
    void on_idle(WorkerId worker, Orders&) {
        if (cancel_) computing_.remove(worker);
    }
    void on_lost(WorkerId worker, Orders&) {
        if (cancel_) computing_.remove(worker);
    }
    Decision on_arrival(const Arrival& arrival, Orders&) {
        if (cancel_) computing_.remove(arrival.worker);
        const bool fresh = arrival.version - arrival.read_version < threshold_;
        return {.fire = fresh, .discard = !fresh};
    }
    void on_applied(Time, Orders& orders) {
        ++version_;
        if (cancel_) computing_.take_until(version_ - threshold_, orders.cancel);
    }
    bool operator==(const Ringmaster&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("threshold", self.threshold_);
        field("cancel", self.cancel_);
        field("version", self.version_);
        field("computing", self.computing_);
    }

private:
    std::int64_t threshold_ = 1;
    bool cancel_ = false;
    Version version_ = 0;
    WaitLists computing_;  ///< workers by the version that they compute on
};

}  // namespace rubato
