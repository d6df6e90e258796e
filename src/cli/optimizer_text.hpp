// What `rubato check` says of optimizer and staleness rule.
#pragma once

#include "core/scenario.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// Name, momentum and weight decay.
std::string optimizer_text(const OptimizerSpec& optimizer);
/// Learning rate, what it does by epochs, and the staleness rule.
std::string rate_text(const OptimizerSpec& optimizer);
/// What the server keeps beside the weights, in memory, for optimizer and rule; parameters: elements of the weights.
std::string optimizer_memory_text(const Scenario& scenario, std::int64_t parameters);

}  // namespace rubato::cli
