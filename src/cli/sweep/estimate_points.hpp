// What a sweep will take, before it runs.
#pragma once

#include "cli/sweep/plan.hpp"

namespace rubato::cli {

struct SweepEstimate {
    double seconds = 0;  ///< of one core, all points together; as `rubato check` estimates a run
    double table_bytes = 0;
    double kept_bytes = 0;  ///< of run directories, if they are kept
    bool partly = false;    ///< some runs are ended by time or a target only, which says nothing
};

/// From a sample of the settings where there are many.
SweepEstimate estimate_points(const Plan& plan, Resolver& resolver);

}  // namespace rubato::cli
