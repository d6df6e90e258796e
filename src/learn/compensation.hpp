// Staleness rules that look at weights: each element of a gradient by where its weight was when the gradient was
// computed (then) and where it is now.
#pragma once

#include "core/staleness_rule.hpp"
#include "core/types.hpp"

#include <cstddef>

namespace rubato::learn {

class Factors;

/// One summand: factor * gradient, as the rule has it.
struct Summand {
    const float* gradient = nullptr;  ///< or `factors`
    float factor = 1;
    /// Weights that it was computed on; null: the present ones, or the rule looks at none.
    const float* then = nullptr;
    WorkerId worker = -1;              ///< whose gradient it is; -1: a sum, left as it is
    const Factors* factors = nullptr;  ///< of the gradient, all of it; not for a fold
};

/// Element by element, in float32 and in this order:
///
/// delay compensation (Zheng et al. 2017): h = g * g;
///     plain:     g + (strength * h) * (now - then)
///     adaptive:  s = decay * s + (1 - decay) * h;  g + (strength / sqrt(s + 1e-7) * h) * (now - then)
/// gap-aware (Barkai, Hakimi and Schuster 2020):
///     g / (1 + |now - then| / (rate * (sqrt(q * correction) + 1e-8)))
///     after each step:  u = (old - new) / rate of the step;  q = decay * q + (1 - decay) * (u * u)
///     correction = 1 / (1 - decay^steps)
///
/// What was computed on the present weights keeps its bits. It has no memory of its own: `state` is
/// [arrays()][elements].
class Compensation {
public:
    /// rate: the learning rate as configured. workers: lambda.
    Compensation(const StalenessRule& rule, double rate, int workers);
    /// Arrays of state, each as long as the weights.
    int arrays() const;
    /// Whether it has anything to do with the summand.
    bool concerns(const Summand& summand) const {
        return looks_ && summand.worker >= 0 && (summand.then != nullptr || adaptive_);
    }
    bool looks_at_weights() const { return looks_; }
    bool watches_steps() const { return gap_; }

    /// Where in the arrays, of how many elements each, a block lies; steps: taken before.
    struct Block {
        float* state = nullptr;
        std::size_t elements = 0;
        std::size_t first = 0, n = 0;
        Version steps = 0;
    };
    /// out = what the rule makes of a block of the summand's gradient, without its factor. gradient, now: [n], elements
    /// [first, first + n) of the gradient and of the present weights.
    void correct(const Summand& summand, const float* gradient, const float* now, const Block& block, float* out) const;
    /// A step has been taken from `old` to `made`, both [n].
    void watch(const float* old, const float* made, float rate, const Block& block) const;

private:
    bool looks_ = false, gap_ = false, adaptive_ = false, by_worker_ = false;
    double decay_double_ = 0;
    float strength_ = 0, decay_ = 0, rate_ = 0;
    int workers_ = 1;
};

}  // namespace rubato::learn
