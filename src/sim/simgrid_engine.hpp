// The one engine that SimGrid allows a process, made anew for each run.
#pragma once

#include <simgrid/s4u.hpp>

namespace rubato::sim {

/// A new engine at time 0, quiet and without platform, in place of the one before, of which nothing may be in use.
simgrid::s4u::Engine& fresh_engine();

}  // namespace rubato::sim
