// `faults` of a scenario.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// After the walk: each is of one kind, and of workers that there are. Throws InputError.
void check_faults(const Node& faults, std::int64_t lambda);

/// From the checked tree.
std::vector<FaultSpec> build_faults(const Node& faults);

/// What breaks and when, a line each; and where that is the end of the run, that it is.
std::vector<std::string> fault_sentences(const Scenario& scenario);

}  // namespace rubato::cli
