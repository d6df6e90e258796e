// What a combination of sampling and protocol promises, in sentences.
#pragma once

#include "core/scenario.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// One sentence each: exactness of an epoch, what depends on the order of events, staleness, bits.
std::vector<std::string> guarantees(const Scenario& scenario);

}  // namespace rubato::cli
