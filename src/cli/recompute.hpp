// rubato replay --set: the schedule of a recorded run under another update rule.
#pragma once

#include "cli/commands.hpp"
#include "cli/logged_run.hpp"

namespace rubato::cli {

/// Leaves a run directory like any other. Returns the exit status: that of a run.
int recompute(LoggedRun& run, const ReplayOptions& options);

}  // namespace rubato::cli
