// Modelled machines, opened once before any point runs.
#pragma once

#include "cli/sweep/plan.hpp"

namespace rubato::cli {

/// Opens the platforms of the plan (each in a process of its own, since SimGrid opens some only once; the first few
/// dozen where there are more), so that what is wrong with one is told before any work, and tells their warnings.
/// Throws sim::PlatformError.
void check_platforms(const Plan& plan, Resolver& resolver);

/// Loads the module of SimGrid's network, for the processes that are forked later, where the plan needs it. Not where
/// it has platforms that must be the first of their process: a module is loaded with a platform.
void load_simgrid(const Plan& plan);

}  // namespace rubato::cli
