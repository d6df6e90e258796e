// n-softsync (Gupta et al. 2015, section 3.1, equation 5; K-batch-async with K = c): an update is made of the first c =
// floor(lambda / n) gradients that arrive, whoever sent them; a fast worker may contribute twice.
#pragma once

#include "core/policies/decision.hpp"

#include <string_view>

namespace rubato {

class NSoftsync : public PolicyDefaults {
public:
    static constexpr std::string_view name = "n-softsync", kind = name;
    /// gradients_per_update: c >= 1.
    explicit NSoftsync(int gradients_per_update = 1) : c_(gradients_per_update) {}
    PolicyTraits traits() const { return {.gradients = c_}; }
    Decision on_arrival(const Arrival&, Orders&) {
        if (++arrived_ < c_) return {};
        arrived_ = 0;
        return {.fire = true};
    }
    /// Of a sum, gradients may come beyond those that an update takes, and it takes them, too.
    void on_applied(Time, Orders&) { arrived_ = 0; }
    bool operator==(const NSoftsync&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("c", self.c_);
        field("arrived", self.arrived_);
    }

private:
    int c_ = 1;
    int arrived_ = 0;
};

}  // namespace rubato
