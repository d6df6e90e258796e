// The run directories that are compared.
#pragma once

#include "cli/compare/saved_run.hpp"
#include "cli/node.hpp"

#include "trace/summary.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// A run that has come to its end, with what it left.
struct RecordedRun {
    std::string directory;
    Node scenario;  ///< scenario.json
    trace::SummaryView summary;
    std::vector<SavedWorker> workers;
    std::vector<trace::ServerRow> servers;
    std::vector<UpdateRow> updates;      ///< empty where trace.updates was false
    std::vector<GradientRow> gradients;  ///< empty where trace.gradients was false or left rows out

    int lambda() const { return static_cast<int>(workers.size()); }
};

/// Throws InputError (one line) where the directory holds no run, one without a summary, or a broken file. What is
/// doubtful but can be compared goes to `warnings`.
RecordedRun read_recorded_run(const std::string& directory, std::vector<std::string>& warnings);

/// Throws InputError, naming the keys, where two of the runs are no runs of one experiment: another protocol, topology,
/// number of workers, batch size or pipeline. Other keys that change what is computed or charged (model, data,
/// optimizer, cost, stop) are warnings; runs of one side must agree in their cluster as well. Machines, seeds, faults
/// and traces of the two sides may differ: that is what a comparison is for.
void check_same_experiment(const std::vector<RecordedRun>& predicted, const std::vector<RecordedRun>& measured,
                           std::vector<std::string>& warnings);

}  // namespace rubato::cli
