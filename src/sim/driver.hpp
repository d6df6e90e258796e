// The simulation driver: runs roles under virtual time over a modelled network.
#pragma once

#include "core/role.hpp"
#include "learn/task.hpp"
#include "trace/recorder.hpp"

#include <atomic>
#include <functional>

namespace rubato::sim {

/// What a run needs and what may end it from outside.
struct RunInput {
    const Scenario* scenario = nullptr;
    const learn::Task* task = nullptr;  ///< null: timing only
    std::int64_t samples = 0;           ///< training samples of one epoch
    std::int64_t parameters = 0;
    trace::Recorder* recorder = nullptr;  ///< may be null
    /// Sees every step after the recorder: tests look over the engine's shoulder here.
    std::function<void(Time, RoleId, const Event&, const Actions&)> observer;
    const std::atomic<bool>* interrupted = nullptr;  ///< becomes true on SIGINT or SIGTERM
    std::function<void()> tick;                      ///< called now and then from the driver's thread, for progress
};

/// Runs to the end. Throws PlatformError for a bad platform; a deadlock is a status of the report.
trace::DriverReport run(const RunInput& input);

/// Where the roles are placed: host and device class by role.
std::vector<trace::Place> places(const Scenario& scenario);

}  // namespace rubato::sim
