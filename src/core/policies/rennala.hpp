// rennala (Tyurin and Richtarik 2023, algorithm 4): an update takes the first B gradients that were computed on the
// version that it replaces, whoever sent them; a fast worker may contribute several. Others are dropped. Nobody waits.
// Staleness is 0 for every gradient that is applied.
#pragma once

#include "core/policies/decision.hpp"

#include <string_view>

namespace rubato {

class Rennala : public PolicyDefaults {
public:
    static constexpr std::string_view name = "rennala", kind = name;
    /// batch: B gradients.
    explicit Rennala(int batch = 1) : batch_(batch) {}
    PolicyTraits traits() const { return {.drops = true, .gradients = batch_}; }
    Decision on_arrival(const Arrival& arrival, Orders&) {
        if (arrival.read_version < arrival.version) return {.discard = true};
        if (++arrived_ < batch_) return {};
        arrived_ = 0;
        return {.fire = true};
    }
    bool operator==(const Rennala&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("batch", self.batch_);
        field("arrived", self.arrived_);
    }

private:
    int batch_ = 1;
    int arrived_ = 0;
};

}  // namespace rubato
