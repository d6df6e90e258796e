// The driver of scenarios with a schedule.
#pragma once

#include "trace/recorder.hpp"
#include "trace/run_input.hpp"

#include <vector>

namespace rubato::sim {

/// Runs scenario.schedule.trace to the end; stop.gradients must not lie beyond the trace (plan_schedule). Throws
/// ScheduleError where the trace has changed since and cannot be followed any more.
trace::DriverReport run_schedule(const trace::RunInput& input);

/// Nobody runs anywhere: names for the tables.
std::vector<trace::Place> schedule_places(const Scenario& scenario);

}  // namespace rubato::sim
