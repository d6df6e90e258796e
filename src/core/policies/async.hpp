// async (Gupta et al. 2015, section 3.1; the update rule of Downpour SGD): every gradient is applied alone as it
// arrives. Staleness has no bound. Trace for trace n-softsync with n = lambda.
#pragma once

#include "core/policies/decision.hpp"

#include <string_view>

namespace rubato {

class Async {
public:
    static constexpr std::string_view name = "async", kind = name;
    PolicyTraits traits() const { return {}; }
    void on_round(int) {}
    Ready on_ready(WorkerId) { return Ready::start; }
    Decision on_arrival(const Arrival&) { return {.fire = true}; }
    void on_applied() {}
    bool operator==(const Async&) const = default;
    template <class Self, class F>
    static void each(Self&, F&&) {}
};

}  // namespace rubato
