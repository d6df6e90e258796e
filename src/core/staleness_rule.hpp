// Staleness rules: how the learning rate answers to staleness. A part of its own, composable with every policy.
#pragma once

#include "core/types.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rubato {

/// What a rule may look at when a gradient is accepted.
struct RuleInfo {
    double staleness = 0;  ///< versions between the weights that were read and those that the update replaces
    double age = 0;        ///< seconds between the pull and the acceptance
    double worker = 0;
    double samples = 0;
    double version = 0;         ///< the version that the update replaces
    double epoch = 0;           ///< accepted samples / N
    double mean_staleness = 0;  ///< of the last update; 0 before the first
    double lambda = 1;
    double n = 1;  ///< n of n-softsync; lambda / gradients per update elsewhere
    double batch_size = 1;
};

/// An expression over RuleInfo, parsed outside the core. Equal texts are equal rules.
class Expression {
public:
    virtual ~Expression() = default;
    virtual double operator()(const RuleInfo& info) const = 0;
    virtual std::string_view text() const = 0;
    /// Whether it depends on a field of RuleInfo; true where nobody can tell.
    virtual bool looks_at(std::string_view) const { return true; }
};

/// A named rule or an expression. Update-level rules leave the gradients' bits alone and scale the learning rate;
/// gradient-level rules weigh each gradient within its update; two rules weigh each element of each gradient.
struct StalenessRule {
    enum class Kind : std::uint8_t {
        none,
        sqrt_batch,              ///< alpha * sqrt(lambda * batch_size / reference_batch): hardsync of Gupta et al. 2015
        inverse_n,               ///< alpha / n: n-softsync, ibid.
        inverse_mean_staleness,  ///< alpha / max(1, mean staleness of the last update), ibid.
        inverse_staleness,       ///< each gradient / max(1, its staleness): footnote, ibid.
        polynomial,              ///< each gradient * (1 + its staleness)^-exponent
        delay_compensation,      ///< each element towards what it would be now: Zheng et al. 2017
        gap_aware,               ///< each element by how far its weight has moved: Barkai et al. 2020
        expression               ///< each gradient * expression
    };
    Kind kind = Kind::none;
    double reference_batch = 128;
    double exponent = 0.5;
    double strength = 0.04;             ///< delay compensation
    bool adaptive = false;              ///< delay compensation: strength over the root of a mean square
    bool mean_square_by_worker = true;  ///< of adaptive delay compensation; otherwise one for all workers
    double decay = 0.95;                ///< of the running means of squares
    std::shared_ptr<const Expression> expression;

    /// Whether gradient_factor may be anything but 1.
    bool weighs_gradients() const {
        return kind == Kind::inverse_staleness || kind == Kind::polynomial || kind == Kind::expression;
    }
    /// Whether the rule looks at weights: those that a gradient was computed on, element by element. Its arithmetic is
    /// a kernel of src/learn; both factors are 1.
    bool looks_at_weights() const { return kind == Kind::delay_compensation || kind == Kind::gap_aware; }
    /// Factor on the learning rate of the whole update.
    double update_factor(const RuleInfo& info) const;
    /// Factor on one gradient.
    double gradient_factor(const RuleInfo& info) const;
    bool operator==(const StalenessRule& other) const;
};

std::string_view name(StalenessRule::Kind kind);

}  // namespace rubato
