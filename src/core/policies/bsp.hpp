// bsp (Valiant 1990; Zhao et al. 2019, section 2): a barrier after each iteration. The server says OK to all workers
// when the last gradient of the round has been applied, and each asks for the weights.
//
// aggregated: one update a round, which is that of hardsync; staleness is 0. per-gradient: an update for every gradient
// as it arrives, so the i-th of a round has staleness i - 1: ssp with bound 0, trace for trace.
#pragma once

#include "core/policies/decision.hpp"

#include <string_view>

namespace rubato {

class Bsp : public PolicyDefaults {
public:
    static constexpr std::string_view name = "bsp", kind = name;
    explicit Bsp(int lambda = 1, bool per_gradient = false) : lambda_(lambda), per_gradient_(per_gradient) {}
    PolicyTraits traits() const {
        return {.word = Word::ok,
                .rounds = true,
                .batch_order = !per_gradient_,
                .alone = per_gradient_,
                .gradients = per_gradient_ ? 1 : lambda_};
    }
    /// A round counts the workers that got a batch.
    void on_round(int workers) {
        expected_ = workers;
        arrived_ = 0;
    }
    Decision on_arrival(const Arrival&, Orders&) { return {.fire = ++arrived_ == expected_ || per_gradient_}; }
    void on_applied(Time, Orders& orders) { orders.round = arrived_ == expected_; }
    bool operator==(const Bsp&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("lambda", self.lambda_);
        field("per_gradient", self.per_gradient_);
        field("expected", self.expected_);
        field("arrived", self.arrived_);
    }

private:
    int lambda_ = 1;
    bool per_gradient_ = false;
    int expected_ = 0;
    int arrived_ = 0;
};

}  // namespace rubato
