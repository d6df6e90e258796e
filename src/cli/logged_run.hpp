// A run directory with a log of events, opened to be replayed.
#pragma once

#include "cli/load.hpp"
#include "core/run_state.hpp"
#include "learn/task.hpp"
#include "sim/replay/recomputation.hpp"
#include "trace/checkpoint.hpp"
#include "trace/log_format.hpp"
#include "trace/recorder.hpp"
#include "trace/replay_result.hpp"

#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

/// What the log begins with was altered: a negative verdict, not wrong input; what() says why.
struct LogDiffers : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What is at hand of a recorded run. The log stands at its beginning.
struct LoggedRun {
    std::string directory, log_path;
    Loaded loaded;
    trace::LogHeader header;
    std::optional<RunState> resumed;  ///< what the log begins with, where the run was resumed from a checkpoint
    std::optional<trace::Checkpoint> checkpoint;  ///< that one, once recorded_task() has read it
    std::ifstream log;
    std::int64_t log_bytes = 0;

    // Of summary.json; empty where there is none, as that of a killed run.
    bool has_summary = false;
    std::string status, backend, weights_hash;
    bool virtual_clock = true;

    const trace::Checkpoint* start() const { return checkpoint ? &*checkpoint : nullptr; }
    /// How much of the log has been read, in [0, 1].
    double fraction();
};

/// Throws InputError where something is missing or the log is none, LogDiffers where it was altered.
std::unique_ptr<LoggedRun> open_recorded(const std::string& directory);

/// Where the roles ran, by role, as workers.csv and servers.csv say; empty names where they do not.
std::vector<trace::Place> recorded_places(const LoggedRun& run);

/// The learning task that a replay computes with; reads the checkpoint of a resumed run. Throws InputError for a run of
/// timing only, for one by a schedule, where the data at hand are not those of the log, and where the checkpoint that
/// it begins with is missing or another.
std::unique_ptr<learn::Task> recorded_task(LoggedRun& run);

/// Roles as they are where the log begins.
std::vector<Role> recorded_roles(const LoggedRun& run, const Scenario& scenario);

/// Empty, or why the replayed log is not that of the run: it differs, or it breaks off although the run has ended.
std::string verdict(const LoggedRun& run, const trace::ReplayResult& result);

/// Replays the log, and has what is replayed computed; `go_on` is asked after each step.
trace::ReplayResult replay_into(LoggedRun& run, sim::Recomputation& recomputation, const std::function<bool()>& go_on);

}  // namespace rubato::cli
