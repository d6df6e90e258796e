#include "learn/optimizer.hpp"

#include "learn/descent.hpp"
#include "learn/factors.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <stdexcept>

namespace rubato::learn {
namespace {

void scale(float* __restrict out, const float* __restrict in, float factor, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) out[i] = factor * in[i];
}

void add_scaled(float* __restrict out, const float* __restrict in, float factor, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) out[i] += factor * in[i];
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

void descend_plainly(std::span<float> to, std::span<const float> from, std::span<const float> gradient, float rate) {
    assert(to.size() == from.size() && to.size() == gradient.size());
    descend_sgd(to.data(), from.data(), gradient.data(), rate, NoDecay{}, to.size());
}

Optimizer::Optimizer(const OptimizerSpec& spec, std::int64_t parameters, int workers)
    : parameters_(static_cast<std::size_t>(parameters)),
      mu_(spec.momentum),
      beta1_(spec.beta1),
      beta2_(spec.beta2),
      epsilon_(static_cast<float>(spec.epsilon)),
      decay_(static_cast<float>(spec.weight_decay)),
      decoupled_(spec.decoupled_weight_decay),
      compensation_(spec.staleness_rule, spec.learning_rate, workers) {
    if (spec.name == "momentum") kind_ = Kind::momentum;
    if (spec.name == "nesterov") kind_ = Kind::nesterov;
    if (spec.name == "adagrad") kind_ = Kind::adagrad;
    if (spec.name == "adam") kind_ = Kind::adam;
    own_arrays_ = kind_ == Kind::sgd ? 0 : kind_ == Kind::adam ? 2 : 1;
}

void Optimizer::restore(std::span<const float> state) {
    if (state.empty()) return;
    if (state.size() != static_cast<std::size_t>(arrays()) * parameters_)
        throw std::invalid_argument("an optimizer's state of another size");
    state_.assign(state.begin(), state.end());
}

/// The direction of one step for elements [first, first + n): a gradient itself where it may be used as it is.
const float* Optimizer::direction(const StepInput& step, const float* now, std::size_t first, std::size_t n,
                                  const Blocks& at) {
    float* const sum = at.sum;
    if (step.summands.empty()) {
        std::fill_n(sum, n, 0.0f);
        return sum;
    }
    const auto as_ruled = [&](const Summand& part) -> const float* {
        const float* gradient = at.product;
        if (part.factors != nullptr)
            part.factors->multiply_out(first, n, at.product);
        else
            gradient = part.gradient + first;
        if (!compensation_.concerns(part)) return gradient;
        compensation_.correct(part, gradient, now, block_at(first, n, step.number - 1), at.one);
        return at.one;
    };
    const Summand& head = step.summands.front();
    const float* gradient = as_ruled(head);
    if (step.summands.size() == 1 && head.factor == 1) return gradient;
    scale(sum, gradient, head.factor, n);
    for (const Summand& part : step.summands.subspan(1)) add_scaled(sum, as_ruled(part), part.factor, n);
    return sum;
}

void Optimizer::descend(const StepInput& step, float* to, const float* from, const float* d, std::size_t first,
                        std::size_t n) {
    const auto rate = static_cast<float>(step.learning_rate);
    const auto mu = static_cast<float>(step.momentum < 0 ? mu_ : step.momentum);
    const auto with = [&](auto decay) {
        switch (kind_) {
            case Kind::sgd: return descend_sgd(to, from, d, rate, decay, n);
            case Kind::momentum: return descend_momentum(to, from, d, array(0) + first, mu, rate, decay, n);
            case Kind::nesterov: return descend_nesterov(to, from, d, array(0) + first, mu, rate, decay, n);
            case Kind::adagrad: return descend_adagrad(to, from, d, array(0) + first, epsilon_, rate, decay, n);
            case Kind::adam: break;
        }
        const auto number = static_cast<double>(step.number);
        const AdamStep adam{static_cast<float>(beta1_),
                            static_cast<float>(beta2_),
                            epsilon_,
                            static_cast<float>(step.learning_rate / (1 - std::pow(beta1_, number))),
                            rate,
                            static_cast<float>(1 / (1 - std::pow(beta2_, number)))};
        descend_adam(to, from, d, array(0) + first, array(1) + first, adam, decay, n);
    };
    if (decay_ == 0) return with(NoDecay{});
    decoupled_ ? with(DecoupledDecay{decay_}) : with(CoupledDecay{decay_});
}

/// One of those that a pass multiplies out; all are cut alike.
static const Factors* factors_of(const Pass& pass) {
    for (const StepInput& step : pass.steps)
        for (const Summand& part : step.summands)
            if (part.factors != nullptr) return part.factors;
    return nullptr;
}

std::size_t Optimizer::piece(const Pass& pass) {
    const Factors* factors = factors_of(pass);
    return factors != nullptr ? factors->piece() : 1;
}

/// Whether a pass is one step of plain descent along factors as they are.
bool Optimizer::is_plain(const Pass& pass) const {
    if (kind_ != Kind::sgd || decay_ != 0 || compensation_.watches_steps() || pass.steps.size() != 1) return false;
    const auto summands = pass.steps.front().summands;
    return summands.size() == 1 && summands.front().factors != nullptr && summands.front().factor == 1 &&
           !compensation_.concerns(summands.front());
}

Optimizer::Blocks::Blocks(std::size_t n)
    : memory(aligned_floats(4 * n)), sum(memory.get()), one(sum + n), before(one + n), product(before + n) {}

void Optimizer::apply(std::span<const Pass> passes, std::size_t offset, std::size_t first, std::size_t count) {
    have_state();
    const std::size_t size = passes.empty() ? 0 : passes.front().to.size();
    assert(std::ranges::all_of(passes, [&](const Pass& it) { return it.from.size() == size && it.to.size() == size; }));
    assert(offset + size <= parameters_);
    assert(size == parameters_ || passes.empty() || !looks_at_weights());
    const std::size_t end = count < size ? std::min(size, first + count) : size;
    const Factors* factors = passes.empty() ? nullptr : factors_of(passes.front());
    assert(std::ranges::all_of(passes,
                               [&](const Pass& it) { return (factors_of(it) != nullptr) == (factors != nullptr); }));
    if (passes.size() == 1 && is_plain(passes.front())) {
        const Pass& pass = passes.front();
        factors->descend(pass.to.data(), pass.from.data(), static_cast<float>(pass.steps.front().learning_rate), first,
                         end - first);
        return;
    }
    const Blocks at(std::min(size, factors != nullptr ? std::max(factors->piece(), block) : block));
    while (first < end) {
        const std::size_t n = std::min(end, factors != nullptr ? factors->end_of_piece(first) : first + block) - first;
        for (const Pass& pass : passes) apply_block(pass, first, n, offset, at);
        first += n;
    }
}

void Optimizer::apply_block(const Pass& pass, std::size_t first, std::size_t n, std::size_t offset, const Blocks& at) {
    float* w = pass.to.data() + first;
    const float* old = pass.from.data() + first;
    if (pass.steps.empty() && old != w) std::memcpy(w, old, n * sizeof(float));
    for (const StepInput& step : pass.steps) {
        const float* d = direction(step, old, first, n, at);
        if (!compensation_.watches_steps()) {
            descend(step, w, old, d, offset + first, n);
        } else {
            std::copy_n(old, n, at.before);
            descend(step, w, at.before, d, first, n);
            compensation_.watch(at.before, w, static_cast<float>(step.learning_rate), block_at(first, n, 0));
        }
        old = w;
    }
}

void Optimizer::fold_in(std::span<float> accumulator, const Summand& summand, bool first,
                        std::span<const float> weights, Version version) {
    have_state();
    float one[block];
    for (std::size_t at = 0; at < accumulator.size(); at += block) {
        const std::size_t n = std::min(block, accumulator.size() - at);
        const float* gradient = summand.gradient + at;
        if (compensation_.concerns(summand)) {
            compensation_.correct(summand, gradient, weights.data() + at, block_at(at, n, version), one);
            gradient = one;
        }
        float* out = accumulator.data() + at;
        first ? scale(out, gradient, summand.factor, n) : add_scaled(out, gradient, summand.factor, n);
    }
}

Optimizer own_optimizer(const OptimizerSpec& spec, std::int64_t parameters) {
    OptimizerSpec own = spec;
    own.staleness_rule = {};
    return {own, parameters};
}

}  // namespace rubato::learn
