// The end of an evaluation: its row, whether the model has diverged, whether it is as good as the run is to become.
#pragma once

#include "core/action.hpp"
#include "core/run_state.hpp"
#include "core/scenario.hpp"

#include <algorithm>
#include <cmath>

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

/// Takes the evaluation that the event is of out of those under way and states its row; nothing where it is none of
/// them.
inline std::optional<EvalRow> end_evaluation(std::vector<PendingEvaluation>& under_way, const Evaluated& event,
                                             Actions& actions) {
    const auto it = std::find_if(under_way.begin(), under_way.end(), [&](const auto& e) { return e.id == event.id; });
    if (it == under_way.end()) return std::nullopt;
    EvalRow row = it->row;
    under_way.erase(it);
    row.metrics = event.metrics;
    actions.evals.push_back(row);
    return row;
}

inline bool loss_diverged(const EvalRow& row) {
    const auto& loss = row.metrics.test_loss ? row.metrics.test_loss : row.metrics.valid_loss;
    return loss && !std::isfinite(*loss);
}

}  // namespace rubato
