// A figure that changes as a run goes on.
#pragma once

#include <cmath>
#include <cstdint>

namespace rubato {

/// `before` for the first `after` counts, then from `from` to `to` within `over` counts: by a constant factor where
/// both are positive, otherwise by a constant difference; then `to`. What is counted is said where it is used.
struct Ramp {
    double from = 0, to = 0;
    std::int64_t over = 0;
    double before = 0;
    std::int64_t after = 0;

    double at(std::int64_t count) const {
        if (count < after) return before;
        if (count - after >= over) return to;
        const double part = static_cast<double>(count - after) / static_cast<double>(over);
        return from > 0 && to > 0 ? from * std::pow(to / from, part) : from + (to - from) * part;
    }
    bool zero() const { return from == 0 && to == 0 && before == 0; }
    static Ramp constant(double value) { return {value, value, 0, value, 0}; }
    bool operator==(const Ramp&) const = default;
};

}  // namespace rubato
