#include "learn/optimizer.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <stdexcept>

namespace rubato::learn {
namespace {

// Weights, velocity and direction of one block (48 KiB) stay in the first or second level cache from step to step.
constexpr std::size_t block = 4096;

// The arrays of these loops are the same or apart, and no element depends on another: the compiler vectorizes them, and
// without contraction (meson.build) each element has the same bits however the loop is cut.

void scale(float* __restrict out, const float* __restrict in, float factor, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) out[i] = factor * in[i];
}

void add_scaled(float* __restrict out, const float* __restrict in, float factor, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) out[i] += factor * in[i];
}

// From the old weights to the new ones, element by element. The new ones may be the memory of the old ones or of the
// direction.
void descend(float* to, const float* from, const float* d, float rate, float decay, std::size_t n) {
    if (decay == 0) {
#pragma GCC ivdep
        for (std::size_t i = 0; i < n; i++) to[i] = from[i] - rate * d[i];
    } else {
#pragma GCC ivdep
        for (std::size_t i = 0; i < n; i++) to[i] = from[i] - rate * (d[i] + decay * from[i]);
    }
}

void descend_momentum(float* to, const float* from, float* __restrict v, const float* d, float mu, float rate,
                      float decay, std::size_t n) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; i++) {
        const float slope = decay == 0 ? d[i] : d[i] + decay * from[i];
        v[i] = mu * v[i] - rate * slope;
        to[i] = from[i] + v[i];
    }
}

void fetch(const float* values, std::size_t n) {
    constexpr std::size_t line = 64 / sizeof(float);
    for (std::size_t i = 0; i < n; i += line) __builtin_prefetch(values + i);
}

/// The direction of one step for elements [first, first + n): a gradient itself where it may be used as it is.
const float* direction(const StepInput& step, std::size_t first, std::size_t n, float* buffer) {
    if (step.summands.empty()) {
        std::fill_n(buffer, n, 0.0f);
        return buffer;
    }
    const Summand& head = step.summands.front();
    if (step.summands.size() == 1 && head.factor == 1) return head.gradient + first;
    scale(buffer, head.gradient + first, head.factor, n);
    for (const Summand& part : step.summands.subspan(1)) add_scaled(buffer, part.gradient + first, part.factor, n);
    return buffer;
}

}  // namespace

void fold(std::span<float> accumulator, std::span<const float> gradient, float factor) {
    assert(accumulator.size() == gradient.size());
    add_scaled(accumulator.data(), gradient.data(), factor, accumulator.size());
}

void fold_first(std::span<float> accumulator, std::span<const float> gradient, float factor) {
    assert(accumulator.size() == gradient.size());
    scale(accumulator.data(), gradient.data(), factor, accumulator.size());
}

Optimizer::Optimizer(const OptimizerSpec& spec, std::int64_t parameters)
    : momentum_(spec.name == "momentum"),
      mu_(static_cast<float>(spec.momentum)),
      decay_(static_cast<float>(spec.weight_decay)) {
    if (momentum_) velocity_.assign(static_cast<std::size_t>(parameters), 0.0f);
}

void Optimizer::restore(std::span<const float> state) {
    if (state.size() != velocity_.size()) throw std::invalid_argument("an optimizer's state of another size");
    std::copy(state.begin(), state.end(), velocity_.begin());
}

void Optimizer::apply(std::span<const float> from, std::span<float> to, std::span<const StepInput> steps,
                      std::span<const float> next) {
    assert(from.size() == to.size());
    assert(!momentum_ || velocity_.size() == to.size());
    float buffer[block];
    for (std::size_t first = 0; first < to.size(); first += block) {
        const std::size_t n = std::min(block, to.size() - first);
        float* w = to.data() + first;
        const float* old = from.data() + first;
        if (!next.empty()) fetch(next.data() + first, n);
        if (steps.empty() && old != w) std::memcpy(w, old, n * sizeof(float));
        for (const StepInput& step : steps) {
            const float* d = direction(step, first, n, buffer);
            const float rate = static_cast<float>(step.learning_rate);
            if (momentum_) {
                descend_momentum(w, old, velocity_.data() + first, d, mu_, rate, decay_, n);
            } else {
                descend(w, old, d, rate, decay_, n);
            }
            old = w;
        }
    }
}

}  // namespace rubato::learn
