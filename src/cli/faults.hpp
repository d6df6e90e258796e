// `faults` of a scenario.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

#include <vector>

namespace rubato::cli {

/// After the walk: each is of one kind, and of workers that there are. Throws InputError.
void check_faults(const Node& faults, std::int64_t lambda);

/// From the checked tree.
std::vector<FaultSpec> build_faults(const Node& faults);

}  // namespace rubato::cli
