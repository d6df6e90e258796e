// What the command line sets in vain.
#pragma once

#include "cli/sweep/sweep_file.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// A line for each of `sets` ("a.b=VALUE") of whose key a variant or an axis sets the same, a part or the whole: their
/// layers lie above, so the value of the command line counts nowhere or not everywhere.
std::vector<std::string> overridden_sets(const SweepFile& sweep, const std::vector<std::string>& sets);

}  // namespace rubato::cli
