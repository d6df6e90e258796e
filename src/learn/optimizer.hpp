// Kernels of Fold and Update: what happens to vectors of float32 when gradients are summed and applied.
#pragma once

#include "core/action.hpp"
#include "core/scenario.hpp"

#include <span>
#include <vector>

namespace rubato::learn {

/// One summand: factor * gradient.
struct Summand {
    const float* gradient = nullptr;
    float factor = 1;
};

/// One step over `summands`, in order.
struct StepInput {
    std::span<const Summand> summands;
    double learning_rate = 0;
};

/// accumulator += factor * gradient; accumulator, gradient: same length.
void fold(std::span<float> accumulator, std::span<const float> gradient, float factor);

/// accumulator = factor * gradient.
void fold_first(std::span<float> accumulator, std::span<const float> gradient, float factor);

/// SGD and momentum SGD with weight decay. State (the momentum buffer v) belongs to the version owner.
///
/// direction d = sum over parts of factor * gradient (in order; a single part with factor 1 keeps its bits)
/// sgd:       w -= rate * (d + weight_decay * w)
/// momentum:  v = momentum * v - rate * (d + weight_decay * w);  w += v   (Krizhevsky et al. 2012, section 5)
class Optimizer {
public:
    Optimizer(const OptimizerSpec& spec, std::int64_t parameters);
    /// Takes all steps in one pass over the weights, with the bits of one by one. `to` may be the memory of `from` or
    /// of a summand of the first step.
    /// next: what will be read afterwards, as long as `to`, or empty; it is fetched into the caches on the way.
    void apply(std::span<const float> from, std::span<float> to, std::span<const StepInput> steps,
               std::span<const float> next = {});
    std::span<const float> state() const { return velocity_; }
    /// Goes on with that of another one with the same settings; state: [parameters], or empty without momentum.
    void restore(std::span<const float> state);

private:
    bool momentum_ = false;
    float mu_ = 0;
    float decay_ = 0;
    std::vector<float> velocity_;
};

}  // namespace rubato::learn
