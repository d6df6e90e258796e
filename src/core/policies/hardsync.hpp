// hardsync (Gupta et al. 2015, section 3.1; SSGD): an update takes one gradient of each worker, all computed on the
// version that it replaces, and the new weights are broadcast. Staleness is 0 for every gradient.
#pragma once

#include "core/policies/decision.hpp"

#include <string_view>

namespace rubato {

class Hardsync : public PolicyDefaults {
public:
    static constexpr std::string_view name = "hardsync", kind = name;
    explicit Hardsync(int lambda = 1) : lambda_(lambda) {}
    PolicyTraits traits() const {
        return {.word = Word::broadcast, .rounds = true, .batch_order = true, .gradients = lambda_};
    }
    /// At the end of an epoch there may be fewer batches than workers: a round counts those that got one.
    void on_round(int workers) { expected_ = workers; }
    Decision on_arrival(const Arrival&, Orders&) { return {.fire = ++arrived_ == expected_}; }
    void on_applied(Time, Orders& orders) {
        arrived_ = 0;
        orders.round = true;
    }
    bool operator==(const Hardsync&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("lambda", self.lambda_);
        field("expected", self.expected_);
        field("arrived", self.arrived_);
    }

private:
    int lambda_ = 1;
    int expected_ = 0;
    int arrived_ = 0;
};

}  // namespace rubato
