// Two sides laid beside each other, and how that is told.
#pragma once

#include "cli/compare/explain.hpp"
#include "cli/compare/figures.hpp"
#include "cli/compare/limits.hpp"
#include "cli/compare/recorded_run.hpp"
#include "cli/compare/substitute.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

struct Comparison {
    std::vector<std::string> predicted, measured;  ///< run directories
    std::string scenario;
    std::string predicted_backend, measured_backend;
    std::vector<ComparedFigure> figures;
    std::vector<double> predicted_staleness, measured_staleness;  ///< distributions
    double ks = 0;
    std::vector<Judged> limits;
    std::optional<Explanation> explanation;
    std::vector<Substitution> substitutions;

    bool within_limits() const;
};

/// `explained`: whether to look for causes. Throws InputError where a limit is on a figure that is not there.
Comparison compare(const std::vector<RecordedRun>& predicted, const std::vector<RecordedRun>& measured,
                   const std::vector<Limit>& limits, bool explained);

/// For people: tables and sentences, lines of at most 120 columns.
std::string comparison_text(const Comparison& comparison);
/// The same with all digits and lines (docs/compare.md); one JSON object.
std::string comparison_json(const Comparison& comparison);

}  // namespace rubato::cli
