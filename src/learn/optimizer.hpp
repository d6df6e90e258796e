// Kernels of Fold and Update: what happens to vectors of float32 when gradients are summed and applied.
#pragma once

#include "core/action.hpp"
#include "core/scenario.hpp"
#include "learn/aligned.hpp"
#include "learn/compensation.hpp"

#include <span>
#include <vector>

namespace rubato::learn {

/// One step over `summands`, in order.
struct StepInput {
    std::span<const Summand> summands;
    double learning_rate = 0;
    double momentum = -1;  ///< of this step; -1: as configured
    Version number = 1;    ///< the version that it makes, so 1 is the first of a run
};

/// The steps from one version to a later one. `to` may be the memory of `from` or of a summand of the first step.
struct Pass {
    std::span<const float> from;
    std::span<float> to;
    std::span<const StepInput> steps;
};

/// accumulator += factor * gradient; accumulator, gradient: same length.
void fold(std::span<float> accumulator, std::span<const float> gradient, float factor);

/// accumulator = factor * gradient.
void fold_first(std::span<float> accumulator, std::span<const float> gradient, float factor);

/// to = from - rate * gradient; all of the same length, `to` may be the memory of `from`.
void descend_plainly(std::span<float> to, std::span<const float> from, std::span<const float> gradient, float rate);

/// What makes new weights of gradients. Its state belongs to the version owner.
///
/// direction d = sum over parts of factor * gradient (in order; a single part with factor 1 keeps its bits), each
/// gradient as the staleness rule has it (compensation.hpp); slope s = d + weight_decay * w, or, with decoupled weight
/// decay (Loshchilov and Hutter 2019), s = d, and the step starts from w - rate * (weight_decay * w)
///
/// sgd:       w -= rate * s
/// momentum:  v = momentum * v - rate * s;  w += v                              Krizhevsky et al. 2012, section 5
/// nesterov:  v = momentum * v - rate * s;  w += momentum * v - rate * s        Sutskever et al. 2013, of the weights
///            that look ahead, as Bengio, Boulanger-Lewandowski and Pascanu 2012 write it
/// adagrad:   h += s * s;  w -= rate * s / (sqrt(h) + epsilon)                  Duchi et al. 2011
/// adam:      m = beta1 * m + (1 - beta1) * s;  v = beta2 * v + (1 - beta2) * (s * s)     Kingma and Ba 2015
///            w -= rate / (1 - beta1^number) * m / (sqrt(v / (1 - beta2^number)) + epsilon)
class Optimizer {
public:
    /// Elements that are dealt with at a time where no gradient is multiplied out: weights, an array of state and
    /// direction of one block (48 KiB) stay in the first or second level cache from step to step.
    static constexpr std::size_t block = 4096;
    static constexpr std::size_t all = static_cast<std::size_t>(-1);

    /// workers: lambda, for rules that keep something of each worker.
    Optimizer(const OptimizerSpec& spec, std::int64_t parameters, int workers = 1);
    /// All passes in one go over the weights, with the bits of one after the other.
    /// offset: of the weights they are about the part that begins there, and so are `from`, `to` and gradients,
    /// all of one length; a rule that looks at weights wants all.
    /// first, count: elements of that part that are made; where gradients are factors, whole pieces of them.
    /// What does not overlap may be applied from several threads after prepare(), beside a fold_in() that looks at no
    /// weights.
    void apply(std::span<const Pass> passes, std::size_t offset = 0, std::size_t first = 0, std::size_t count = all);
    /// Where apply() may begin and end: at multiples of so many elements.
    static std::size_t piece(const Pass& pass);
    void apply(std::span<const float> from, std::span<float> to, std::span<const StepInput> steps) {
        const Pass pass{from, to, steps};
        apply({&pass, 1});
    }
    /// Has the memory of the state.
    void prepare() { have_state(); }
    /// accumulator += factor * gradient, or = where it is the `first`, as the rule has it at `weights` of `version`.
    void fold_in(std::span<float> accumulator, const Summand& summand, bool first, std::span<const float> weights,
                 Version version);
    bool looks_at_weights() const { return compensation_.looks_at_weights(); }
    /// [arrays of the optimizer and of the rule][parameters]; empty before the first step, and where there is none.
    std::span<const float> state() const { return state_; }
    /// Arrays of state, each as long as the weights.
    int arrays() const { return own_arrays_ + compensation_.arrays(); }
    /// Goes on with that of another one with the same settings; empty: as at the beginning.
    void restore(std::span<const float> state);

private:
    enum class Kind : std::uint8_t { sgd, momentum, nesterov, adagrad, adam };
    /// Memory that is needed in the process of the version owner alone.
    void have_state() {
        if (state_.empty()) state_.assign(static_cast<std::size_t>(arrays()) * parameters_, 0.0f);
    }
    float* array(int index) { return state_.data() + static_cast<std::size_t>(index) * parameters_; }
    Compensation::Block block_at(std::size_t first, std::size_t n, Version steps) {
        return {array(own_arrays_), parameters_, first, n, steps};
    }
    /// Memory for a block each.
    struct Blocks {
        explicit Blocks(std::size_t n);
        AlignedFloats memory;
        float *sum, *one, *before, *product;
    };
    bool is_plain(const Pass& pass) const;
    const float* direction(const StepInput& step, const float* now, std::size_t first, std::size_t n, const Blocks& at);
    /// Elements [first, first + n) of a pass, whose first one is `offset` in the state.
    void apply_block(const Pass& pass, std::size_t first, std::size_t n, std::size_t offset, const Blocks& at);
    /// first: in the state.
    void descend(const StepInput& step, float* to, const float* from, const float* d, std::size_t first, std::size_t n);

    Kind kind_ = Kind::sgd;
    int own_arrays_ = 0;
    std::size_t parameters_ = 0;
    double mu_ = 0, beta1_ = 0, beta2_ = 0;
    float epsilon_ = 0, decay_ = 0;
    bool decoupled_ = false;
    Compensation compensation_;
    std::vector<float> state_;
};

/// What a worker takes its own steps with: the optimizer of the scenario, without the rule for stale gradients.
Optimizer own_optimizer(const OptimizerSpec& spec, std::int64_t parameters);

}  // namespace rubato::learn
