// Whether the files of a finished run agree with each other.
#pragma once

#include "core/rows.hpp"

#include <string>

namespace rubato::trace {

/// Empty, or the first thing that does not agree, in one line: outcomes in summary.json, workers.csv and the staleness
/// histogram; seconds of each worker and server against time_s, within 1 %. Throws std::invalid_argument where a file
/// cannot be read.
std::string check_run(const std::string& directory);

/// Empty, or by how much the worker's times miss `run_ns` by more than 1 %.
std::string check_times(const WorkerRow& row, Time run_ns);

}  // namespace rubato::trace
