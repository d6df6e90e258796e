// A checked and completed tree becomes the typed scenario of the core.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

#include <vector>

namespace rubato::cli {

/// Throws InputError only for what the tree cannot tell by itself: a staleness rule that cannot be parsed.
Scenario build_scenario(const Node& root);

/// Its `cluster`; the device class "default" is always there.
ClusterSpec build_cluster(const Node& cluster);

/// Mean of the distribution whose quantiles at `levels` (0 to 1) are `values`, linear between them.
double mean_of_quantiles(const std::vector<double>& levels, const std::vector<double>& values);

}  // namespace rubato::cli
