// A profile from what a run has left, on any backend.
#pragma once

#include "cli/calibrate/profile.hpp"

#include <string>

namespace rubato::cli {

struct RunProfileOptions {
    /// Each worker is a device class of its own, worker_class(w): for clusters whose workers differ. Otherwise classes
    /// are those of the run's scenario.
    bool by_worker = false;
};

/// "worker-3".
std::string worker_class(int worker);

/// Reads a run directory (docs/traces.md): compute times from gradients.csv, without each worker's first tenth; costs
/// of the server from servers.csv; messages from timeline.csv where transfers stand there, otherwise from workers.csv,
/// less what sharing the server's link added. What a run cannot tell is left out and stands in the notes. Date and
/// cores are left empty. Throws InputError where files are missing or broken, or no gradient was timed.
Profile profile_of_run(const std::string& directory, const RunProfileOptions& options = {});

}  // namespace rubato::cli
