// One point, run in this process.
#pragma once

#include "cli/sweep/board.hpp"

#include <string>

namespace rubato::cli {

struct PointOptions {
    std::string runs;  ///< folder of run directories, one a point; empty: none is kept
    int threads = 1;   ///< for real gradients, where the scenario leaves their number open
};

/// What came of a point: its row, or an output that cannot be written, which ends the sweep.
struct PointResult {
    enum class Kind : std::uint32_t { row, output_error, output_full };
    Kind kind = Kind::row;
    std::string text;  ///< the row without its newline, or the message
};

/// Never throws: a run that cannot be begun or ends without a result gives a row with status "failed" and the reason.
PointResult run_point(const Setting& setting, const Task& task, const PointOptions& options);

/// The row of a point that came to nothing.
std::string failed_row(const Setting& setting, const Task& task, const std::string& reason);

}  // namespace rubato::cli
