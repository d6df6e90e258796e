// The backends behind one call.
#pragma once

#include "core/scenario.hpp"
#include "learn/task.hpp"
#include "trace/recorder.hpp"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace rubato::cli {

struct BackendInput {
    const Scenario* scenario = nullptr;
    const learn::Task* task = nullptr;  ///< null: timing only
    std::int64_t samples = 0;
    std::int64_t parameters = 0;
    trace::Recorder* recorder = nullptr;
    const std::atomic<bool>* interrupted = nullptr;
    std::function<void()> tick;
};

/// Throws InputError for a backend that is unknown or not yet built.
void require_backend(const std::string& backend);

/// Host and device by role.
std::vector<trace::Place> backend_places(const std::string& backend, const Scenario& scenario);
trace::DriverReport run_backend(const std::string& backend, const BackendInput& input);

struct BackendName {
    const char* name;
    const char* what;
    bool built;
};
const std::vector<BackendName>& backends();

}  // namespace rubato::cli
