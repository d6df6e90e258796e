#include "cli/compare/comparison.hpp"

#include <algorithm>

namespace rubato::cli {
namespace {

std::vector<RunPhases> phases_of_all(const std::vector<RecordedRun>& runs) {
    std::vector<RunPhases> out;
    for (const auto& run : runs) out.push_back(phases_of(run));
    return out;
}

std::vector<std::vector<std::optional<double>>> figures_of_all(const std::vector<RecordedRun>& runs,
                                                               const std::vector<RunPhases>& phases) {
    std::vector<std::vector<std::optional<double>>> out;
    for (std::size_t i = 0; i < runs.size(); ++i) out.push_back(figures_of(runs[i], phases[i]));
    return out;
}

std::vector<std::string> directories(const std::vector<RecordedRun>& runs) {
    std::vector<std::string> out;
    for (const auto& run : runs) out.push_back(run.directory);
    return out;
}

}  // namespace

bool Comparison::within_limits() const {
    return std::all_of(limits.begin(), limits.end(), [](const Judged& it) { return it.kept; });
}

Comparison compare(const std::vector<RecordedRun>& predicted, const std::vector<RecordedRun>& measured,
                   const std::vector<Limit>& limits, bool explained) {
    Comparison out;
    out.predicted = directories(predicted);
    out.measured = directories(measured);
    out.scenario = measured.front().summary.scenario;
    out.predicted_backend = predicted.front().summary.backend;
    out.measured_backend = measured.front().summary.backend;
    const auto before = phases_of_all(predicted), after = phases_of_all(measured);
    out.figures = compare_figures(figures_of_all(predicted, before), figures_of_all(measured, after));
    out.predicted_staleness = staleness_distribution(predicted);
    out.measured_staleness = staleness_distribution(measured);
    out.ks = kolmogorov_smirnov(out.predicted_staleness, out.measured_staleness);
    out.limits = judge(limits, out.figures, out.ks);
    if (!explained) return out;
    bool followed = true, steady = true;
    for (const auto* side : {&before, &after}) {
        for (const auto& run : *side) {
            followed = followed && run.followed;
            steady = steady && run.steady;
        }
    }
    out.explanation = explain(mean_side(predicted, before), mean_side(measured, after), followed, steady);
    return out;
}

}  // namespace rubato::cli
