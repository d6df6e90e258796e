// What a real run pretends to cost (execution.emulate), from the scenario's simulated machine.
#pragma once

#include "core/scenario.hpp"
#include "trace/run_input.hpp"

#include <memory>

namespace rubato::cli {

/// Null where the scenario asks for nothing of the kind. Compute times are those that a simulation would draw, noise
/// included. The scenario must outlive the result. Throws PlatformError for a platform that only SimGrid can read.
std::unique_ptr<trace::EmulatedCosts> emulated_costs(const Scenario& scenario, std::int64_t parameters);

}  // namespace rubato::cli
