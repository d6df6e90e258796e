// The figures that two sides are compared by.
#pragma once

#include "cli/compare/phases.hpp"
#include "cli/sweep/statistics.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

struct FigureKind {
    const char* name;  ///< as --max and JSON call it
    const char* unit;
    const char* about;
};

/// All figures, in the order in which they are shown.
const std::vector<FigureKind>& figure_kinds();
/// Name of the Kolmogorov-Smirnov distance, which --max takes beside them.
inline constexpr const char* ks_name = "ks";

/// The figures of one run, by kind; nothing where it has no such figure.
std::vector<std::optional<double>> figures_of(const RecordedRun& run, const RunPhases& phases);

/// Seconds of a worker per gradient of the run, as spent by cause: their sum is lambda / (gradients per second).
Seconds seconds_per_gradient(const RunPhases& phases);

/// A figure of both sides, over the runs that have it.
struct ComparedFigure {
    const FigureKind* kind = nullptr;
    std::optional<Statistics> predicted, measured;
    /// (predicted - measured) / measured; 0 where both are 0; nothing where it would be infinite or a side has none.
    std::optional<double> error;
};

/// Of the figures that any run has. The outer vectors are by run.
std::vector<ComparedFigure> compare_figures(const std::vector<std::vector<std::optional<double>>>& predicted,
                                            const std::vector<std::vector<std::optional<double>>>& measured);

/// Probability of each staleness 0, 1, ... over the applied gradients: the mean over the runs.
std::vector<double> staleness_distribution(const std::vector<RecordedRun>& runs);

/// Kolmogorov-Smirnov distance: the largest difference of the two distribution functions.
double kolmogorov_smirnov(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace rubato::cli
