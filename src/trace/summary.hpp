// summary.json: its text, and its reader.
#pragma once

#include "core/scenario.hpp"
#include "trace/figures.hpp"
#include "trace/recorder.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rubato::trace {

/// Strictly valid JSON: what is not known, not finite or a ratio of nothing is null. One line a top-level key.
std::string summary_text(const Scenario& scenario, const RecorderOptions& options, const Figures& figures,
                         const DriverReport& report);

/// The figures of a summary that tables and checks look at. Errors and ratios are fractions.
struct SummaryView {
    std::string scenario, backend, clock, status, status_detail, weights_hash;
    double time_s = 0, epochs = 0;
    std::int64_t samples = 0, updates = 0;
    Outcomes gradients;
    std::vector<std::int64_t> histogram;  ///< element k counts the applied gradients of staleness k
    std::int64_t histogram_total = 0;     ///< gradients that it counts
    std::optional<double> samples_per_s, gradients_per_s, updates_per_s, steady_samples_per_s;
    std::optional<double> staleness_mean, staleness_p99, staleness_max, staleness_steady_mean;
    std::optional<double> compute_utilization, train_loss, valid_error, best_valid_error, test_error, time_to_target_s;
    std::vector<std::int64_t> shard_bytes;  ///< of each of several servers: what it was pushed; empty: there is one
    std::optional<double> shards_staleness;
    std::int64_t mixed_gradients = 0;
};

/// Throws std::invalid_argument with one line where the text is not a summary.
SummaryView read_summary(const std::string& text);

/// A short plain table for the end of a run. Throws as read_summary does.
std::string summary_table(const std::string& summary_json, const std::string& directory = {});

}  // namespace rubato::trace
