// What messages of the mpi backend take between two ranks, by their size: for calibration.
#pragma once

#include "exec/mpi/fabric.hpp"

#include <utility>
#include <vector>

namespace rubato::exec {

/// Sends messages of each size there and back between rank 0 and another one, which both call it, with each other as
/// peers and the same sizes; `limit_s` in all. Returns (bytes, seconds) of single ways, half a round trip each, on rank
/// 0, and nothing on the other. Sizes below that of a float32 are rounded up to it. Throws FabricError.
std::vector<std::pair<double, double>> time_messages(Fabric& fabric, int peer, const std::vector<double>& bytes,
                                                     double limit_s);

}  // namespace rubato::exec
