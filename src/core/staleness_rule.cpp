#include "core/staleness_rule.hpp"

#include <algorithm>
#include <cmath>

namespace rubato {

double StalenessRule::update_factor(const RuleInfo& info) const {
    switch (kind) {
        case Kind::sqrt_batch: return std::sqrt(info.lambda * info.batch_size / reference_batch);
        case Kind::inverse_n: return 1 / info.n;
        case Kind::inverse_mean_staleness: return 1 / std::max(1.0, info.mean_staleness);
        case Kind::none:
        case Kind::inverse_staleness:
        case Kind::polynomial:
        case Kind::delay_compensation:
        case Kind::gap_aware:
        case Kind::expression: return 1;
    }
    return 1;
}

double StalenessRule::gradient_factor(const RuleInfo& info) const {
    switch (kind) {
        case Kind::inverse_staleness: return 1 / std::max(1.0, info.staleness);
        case Kind::polynomial: return std::pow(1 + info.staleness, -exponent);
        case Kind::expression: return (*expression)(info);
        case Kind::none:
        case Kind::sqrt_batch:
        case Kind::inverse_n:
        case Kind::inverse_mean_staleness:
        case Kind::delay_compensation:
        case Kind::gap_aware: return 1;
    }
    return 1;
}

bool StalenessRule::operator==(const StalenessRule& other) const {
    if (kind != other.kind) return false;
    switch (kind) {
        case Kind::sqrt_batch: return reference_batch == other.reference_batch;
        case Kind::polynomial: return exponent == other.exponent;
        case Kind::delay_compensation:
            return strength == other.strength && adaptive == other.adaptive && decay == other.decay &&
                   mean_square_by_worker == other.mean_square_by_worker;
        case Kind::gap_aware: return decay == other.decay;
        case Kind::expression: return expression->text() == other.expression->text();
        case Kind::none:
        case Kind::inverse_n:
        case Kind::inverse_mean_staleness:
        case Kind::inverse_staleness: return true;
    }
    return true;
}

std::string_view name(StalenessRule::Kind kind) {
    switch (kind) {
        case StalenessRule::Kind::none: return "none";
        case StalenessRule::Kind::sqrt_batch: return "sqrt-batch";
        case StalenessRule::Kind::inverse_n: return "inverse-n";
        case StalenessRule::Kind::inverse_mean_staleness: return "inverse-mean-staleness";
        case StalenessRule::Kind::inverse_staleness: return "inverse-staleness";
        case StalenessRule::Kind::polynomial: return "polynomial";
        case StalenessRule::Kind::delay_compensation: return "delay-compensation";
        case StalenessRule::Kind::gap_aware: return "gap-aware";
        case StalenessRule::Kind::expression: return "expression";
    }
    return "?";
}

}  // namespace rubato
