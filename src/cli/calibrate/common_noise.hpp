// Slow moments of a host that all of its workers feel at once, from the gradients of a run.
#pragma once

#include "cli/calibrate/run_tables.hpp"

#include <optional>

namespace rubato::cli {

/// What makes simulated compute times (cluster.noise.common, sim/noise.hpp) as alike between workers of one host as
/// those of the run: Spearman's correlation of times of different workers by how far apart they began, taken as that of
/// normal scores (2 sin(pi r / 6)), fitted by least squares. None: no two workers share a host, too few gradients, or a
/// share below 0.05 or within four times its error of 0.
std::optional<CommonNoise> common_noise(const RunTables& run);

}  // namespace rubato::cli
