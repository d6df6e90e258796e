// The local driver: the same roles as threads of one process, in real time.
#pragma once

#include "core/role.hpp"
#include "learn/task.hpp"
#include "trace/recorder.hpp"

#include <atomic>
#include <functional>

namespace rubato::exec {

struct RunInput {
    const Scenario* scenario = nullptr;
    const learn::Task* task = nullptr;  ///< never null: real execution computes gradients
    std::int64_t samples = 0;
    std::int64_t parameters = 0;
    trace::Recorder* recorder = nullptr;
    const std::atomic<bool>* interrupted = nullptr;
    std::function<void()> tick;
};

/// Runs to the end, one reactor thread a role and a thread for each lane that it uses.
trace::DriverReport run_local(const RunInput& input);

std::vector<trace::Place> local_places(const Scenario& scenario);

}  // namespace rubato::exec
