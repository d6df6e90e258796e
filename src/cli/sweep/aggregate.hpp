// What the runs of a setting add up to, over its seeds.
#pragma once

#include "cli/sweep/board.hpp"
#include "cli/sweep/statistics.hpp"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace rubato::cli {

/// Rows of results.csv as far as statistics need them, the last one of each point.
class ResultTable {
public:
    struct Row {
        PointState state = PointState::waiting;
        std::vector<double> figures;  ///< by figure_names(); NaN: none
    };

    void take(const Results& results, const ResultRow& row);
    const Row* find(std::uint64_t identity) const;

private:
    int generation_ = -1;              ///< of the header that the places are of
    std::size_t status_ = 0;           ///< place in the file
    std::vector<std::size_t> places_;  ///< of the figures
    std::unordered_map<std::uint64_t, Row> rows_;
};

/// Columns of results.csv that are numbers a run gave: what statistics are made of.
const std::vector<std::string>& figure_names();
/// Index of a figure; throws InputError with a suggestion, at `option`.
std::size_t figure_named(const std::string& name, const std::string& option);
/// Whether a larger value of the figure is a better one.
bool larger_is_better(const std::string& figure);

/// One setting without its seeds. Runs that diverged or failed are counted and never averaged.
struct SettingSummary {
    std::size_t setting = 0;  ///< of the plan
    std::string label;
    std::vector<std::string> cells;  ///< swept keys, as CSV cells
    int n = 0;                       ///< runs that finished
    int diverged = 0, failed = 0, missing = 0;
    int reached = 0;                           ///< finished runs that reached the scenario's target
    std::vector<std::vector<double>> figures;  ///< [figure], of finished runs that have it
};

/// Settings in the order of the sweep, those without any row left out. The board must have begun.
std::vector<SettingSummary> summarize(const Board& board, Resolver& resolver, const ResultTable& table);

/// aggregate.csv: label, swept keys, n, diverged, failed, reached, and F.mean, F.std, F.median, F.ci95 of each figure
/// F.
std::string aggregate_text(const SweepFile& sweep, const std::vector<SettingSummary>& settings);

}  // namespace rubato::cli
