// Staleness rules and figures of workers as text, parsed by muparser.
#pragma once

#include "core/staleness_rule.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace rubato::cli {

/// Thrown when a rule gives no usable factor during a run; what() is one line that names the inputs.
struct ExpressionError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using Constants = std::vector<std::pair<std::string, double>>;

/// A factor over the fields of RuleInfo and further constants. Throws std::invalid_argument with the position where the
/// text cannot be parsed. The result throws ExpressionError where the factor is negative or not finite.
std::shared_ptr<const Expression> make_expression(const std::string& text, const Constants& constants);

/// A figure of each worker: the expression with i = 1, ..., lambda, [lambda]. Throws std::invalid_argument with the
/// position where the text cannot be parsed, and where a figure is not finite or not above 0.
std::vector<double> worker_figures(const std::string& text, int lambda);

}  // namespace rubato::cli
