#include "core/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rubato {

double scheduled_rate(const OptimizerSpec& optimizer, double rate, double epochs) {
    for (const auto& drop : optimizer.schedule)
        if (epochs >= drop.epoch) rate *= drop.factor;
    const auto& warm_up = optimizer.warm_up;
    if (optimizer.cosine) {
        const auto& cosine = *optimizer.cosine;
        const double length = cosine.epochs - warm_up.epochs;
        const double done = length > 0 ? std::clamp((epochs - warm_up.epochs) / length, 0.0, 1.0) : 1.0;
        rate *= 1 - (1 - cosine.final_factor) * (1 - std::cos(std::numbers::pi * done)) / 2;  // 1 at first, to the bit
    }
    if (epochs < warm_up.epochs) rate *= warm_up.from + (1 - warm_up.from) * (epochs / warm_up.epochs);
    return rate;
}

DecoupledMomentum decoupled_momentum(double momentum, double staleness) {
    if (staleness <= 0) return {momentum, 1};
    const double lag = std::max(0.0, momentum / (1 - momentum) - staleness);
    const double left = lag / (1 + lag);
    return {left, (1 - left) / (1 - momentum)};
}

}  // namespace rubato
