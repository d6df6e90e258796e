// The local driver: the same roles as threads of one process, in real time.
#pragma once

#include "core/role.hpp"
#include "learn/task.hpp"
#include "trace/recorder.hpp"
#include "trace/run_input.hpp"

namespace rubato::exec {

using trace::RunInput;

/// Runs to the end, one reactor thread a role and a thread for each lane that it uses. input.task is never null.
trace::DriverReport run_local(const RunInput& input);

/// Where the roles run, by role.
std::vector<trace::Place> local_places(const Scenario& scenario);

}  // namespace rubato::exec
