// asp (Zhao et al. 2019, section 2): every gradient is applied as it arrives, and its worker is told OK at once. The
// update rule of async; but the worker asks for weights after the OK, so it reads those with its own update in them.
#pragma once

#include "core/policies/decision.hpp"

#include <string_view>

namespace rubato {

class Asp : public PolicyDefaults {
public:
    static constexpr std::string_view name = "asp", kind = name;
    PolicyTraits traits() const { return {.word = Word::ok, .alone = true}; }
    Decision on_arrival(const Arrival& arrival, Orders&) {
        pushed_ = arrival.worker;
        return {.fire = true};
    }
    void on_applied(Time, Orders& orders) { orders.release.push_back(pushed_); }
    bool operator==(const Asp&) const = default;

private:
    WorkerId pushed_ = 0;  ///< between a push and its update
};

}  // namespace rubato
