// The steps of a run that every backend has in common.
#pragma once

#include "cli/commands.hpp"
#include "cli/load.hpp"
#include "learn/task.hpp"
#include "trace/recorder.hpp"
#include "trace/run_input.hpp"

#include <memory>
#include <optional>
#include <string>

namespace rubato::cli {

/// Reads the scenario with what the command line sets, and remarks on it. Throws InputError, also where the backend
/// cannot run it.
Loaded load_for_run(const RunOptions& options);

/// The run directory that is asked for, or the default one.
std::string directory_of(const RunOptions& options, const Loaded& loaded);

/// Exit status of a run that the directory holds already, which is printed then; none where it is to be made.
std::optional<int> report_earlier(const RunOptions& options, const Loaded& loaded, const std::string& directory);

/// All but what the backend tells: places, rank.
trace::RecorderOptions recorder_options(const RunOptions& options, const Loaded& loaded, const std::string& directory);

trace::RunInput run_input(const Loaded& loaded, const learn::Task* task, trace::Recorder& recorder,
                          const std::atomic<bool>& interrupted);

/// Calls `run` and turns what ends it early into the report, or into the error, that the user is to see.
trace::DriverReport guarded_run(const RunOptions& options, const Loaded& loaded, const std::string& directory,
                                const std::function<trace::DriverReport()>& run);

/// Writes the summary, prints it and returns the exit status.
int conclude(const RunOptions& options, const std::string& directory, trace::Recorder& recorder,
             trace::DriverReport report);

/// rubato run --backend mpi.
int run_on_ranks(const RunOptions& options);

}  // namespace rubato::cli
