// Whether an evaluation is as good as a run is to become.
#pragma once

#include "core/rows.hpp"
#include "core/scenario.hpp"

namespace rubato {

/// A figure that is not there reaches nothing.
inline bool reaches(const EvalRow& row, const Target& target) {
    const auto& m = row.metrics;
    std::optional<double> value;
    if (target.metric == "valid_error") value = m.valid_error;
    if (target.metric == "valid_loss") value = m.valid_loss;
    if (target.metric == "test_error") value = m.test_error;
    if (target.metric == "test_loss") value = m.test_loss;
    if (target.metric == "train_loss") value = row.train_loss;
    if (target.metric == "gradient_norm") value = m.gradient_norm;
    if (target.metric == "suboptimality") value = m.suboptimality;
    return value && *value <= target.at_most;
}

}  // namespace rubato
