// The network as the messages of a run saw it.
#pragma once

#include "cli/calibrate/profile.hpp"
#include "cli/calibrate/run_tables.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

/// Nothing where no message took any time. What the run cannot tell is added to `notes`.
std::optional<NetworkProfile> network_of_run(const RunTables& run, std::vector<std::string>& notes);

}  // namespace rubato::cli
