// The figures of a summary as cells of a row, for tables of many runs.
#pragma once

#include "core/scenario.hpp"
#include "trace/figures.hpp"
#include "trace/recorder.hpp"

#include <string>
#include <vector>

namespace rubato::trace {

struct SummaryColumn {
    std::string name;     ///< the keys of summary.json with dots between: "gradients.applied"
    bool figure = false;  ///< a number that came of the run; not what the run was, and not a hash
};

/// All scalars of summary.json in its order, but for what says which run it was (scenario, backend, clock, seed,
/// schedule, status, status_detail), and its environment. Units are those of docs/traces.md.
const std::vector<SummaryColumn>& summary_columns();

/// The cells of these columns with commas between; empty where summary.json has null. None needs quotes.
std::string summary_cells(const Scenario& scenario, const Figures& figures, const DriverReport& report);

}  // namespace rubato::trace
