// The tables of a run directory as the rows that were written (docs/traces.md).
#pragma once

#include "core/rows.hpp"
#include "trace/recorder.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

/// A row of workers.csv. Seconds are from the start of the run to its last applied update.
struct SavedWorker {
    std::int64_t applied = 0;
    bool ended = false;  ///< it came to its end, so that its seconds are known
    double compute_s = 0;
    double push_queued_s = 0, push_moving_s = 0;
    double pull_request_s = 0, pull_moving_s = 0;
    double policy_wait_s = 0, apply_wait_s = 0, idle_s = 0;
};

/// All of these throw InputError, with file and line, where the file is not such a table; a broken last line is skipped
/// and told in `warnings`.

/// gradients.csv, without scale, loss and batch; in the order of the file.
std::vector<GradientRow> read_gradients(const std::string& path, bool sums, std::vector<std::string>& warnings);
/// updates.csv, without its learning rates and epochs.
std::vector<UpdateRow> read_updates(const std::string& path, std::vector<std::string>& warnings);
/// workers.csv by worker.
std::vector<SavedWorker> read_workers(const std::string& path, std::vector<std::string>& warnings);
/// servers.csv; without its hosts.
std::vector<trace::ServerRow> read_servers(const std::string& path, std::vector<std::string>& warnings);

}  // namespace rubato::cli
