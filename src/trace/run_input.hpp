// What every driver is given, and what may end a run from outside.
#pragma once

#include "core/action.hpp"
#include "core/scenario.hpp"

#include <atomic>
#include <functional>

namespace rubato::learn {
class Task;
}

namespace rubato::trace {

class Recorder;

struct RunInput {
    const Scenario* scenario = nullptr;
    const learn::Task* task = nullptr;  ///< null: timing only, which real backends refuse
    std::int64_t samples = 0;           ///< training samples of one epoch
    std::int64_t parameters = 0;
    Recorder* recorder = nullptr;  ///< may be null
    /// Sees every step after the recorder: tests look over the engine's shoulder here. Called from several threads by
    /// real backends.
    std::function<void(Time, RoleId, const Event&, const Actions&)> observer;
    const std::atomic<bool>* interrupted = nullptr;  ///< becomes true on SIGINT or SIGTERM; may be null
    std::function<void()> tick;                      ///< called now and then from the driver's thread, for progress
};

}  // namespace rubato::trace
