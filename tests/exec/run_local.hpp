// Local runs under a test's eyes.
#pragma once

#include "exec/local.hpp"
#include "support/simulate.hpp"

#include <mutex>

namespace rubato::test {

/// Runs to the end with the recorder; `input` has what is beyond scenario and task. All that roles state goes to
/// `ledger`.
inline trace::DriverReport run_watched(const Scenario& scenario, const learn::Task& task, trace::Recorder& recorder,
                                       exec::RunInput input, Ledger& ledger) {
    input.scenario = &scenario;
    input.task = &task;
    input.samples = task.samples();
    input.parameters = task.parameters();
    input.recorder = &recorder;
    std::mutex mutex;
    input.observer = [&](Time, RoleId, const Event&, const Actions& actions) {
        std::lock_guard lock(mutex);
        ledger.add(actions);
    };
    return exec::run_local(input);
}

}  // namespace rubato::test
