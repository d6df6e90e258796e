// Files of hosts for real runs, and the launcher's command line for them.
#pragma once

#include "core/scenario.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

struct HostSlots {
    std::string name;
    int slots = 1;  ///< ranks that it takes before others are asked
};

/// One host a line: NAME, NAME slots=N [max_slots=N] (Open MPI) or NAME:N (SimGrid, MPICH). Blank lines and what
/// follows a # are left out; line ends may be CRLF, and the last one may be missing. A host that is named again has so
/// many slots more. Throws InputError (file, line, what was expected) for anything else, and where there is no host.
std::vector<HostSlots> read_hostfile(const std::string& path);

/// How to start the real run: mpirun with all that it needs for the scenario on these hosts (none: on this one).
std::string launch_command(const Scenario& scenario, const std::string& path, const std::vector<HostSlots>& hosts);

/// Which ranks mpirun puts where, host after host; ranks beyond all slots go round again.
std::vector<std::string> rank_hosts(int ranks, const std::vector<HostSlots>& hosts);

}  // namespace rubato::cli
