// What a trace of delays amounts to under a scenario, before anything is computed.
#pragma once

#include "core/scenario.hpp"

#include <cstdint>

namespace rubato::sim {

struct SchedulePlan {
    std::int64_t gradients = 0;  ///< that the server takes in
    bool stops = false;          ///< by a criterion of the scenario; otherwise the trace ends the run
    std::uint64_t checksum = 0;  ///< of the file
};

/// Follows scenario.schedule.trace through the server to the end, without computing. samples: of one epoch; parameters:
/// elements of the weights. Throws ScheduleError where the trace is wrong or cannot be followed.
SchedulePlan plan_schedule(const Scenario& scenario, std::int64_t samples, std::int64_t parameters);

}  // namespace rubato::sim
