// async (Gupta et al. 2015, section 3.1; the update rule of Downpour SGD): every gradient is applied alone as it
// arrives. Staleness has no bound. Trace for trace n-softsync with n = lambda.
#pragma once

#include "core/policies/decision.hpp"

#include <string_view>

namespace rubato {

class Async : public PolicyDefaults {
public:
    static constexpr std::string_view name = "async", kind = name;
    PolicyTraits traits() const { return {.alone = true}; }
    Decision on_arrival(const Arrival&, Orders&) { return {.fire = true}; }
    bool operator==(const Async&) const = default;
};

}  // namespace rubato
