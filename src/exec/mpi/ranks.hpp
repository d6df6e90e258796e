// The `mpi` backend: the same roles on the ranks of one program.
#pragma once

#include "exec/mpi/fabric.hpp"
#include "exec/mpi/wire.hpp"
#include "trace/recorder.hpp"
#include "trace/run_input.hpp"

#include <string>
#include <vector>

namespace rubato::exec {

RankMap rank_map(const Scenario& scenario);

/// Where the roles run, by role; hosts: by rank.
std::vector<trace::Place> rank_places(const Scenario& scenario, const std::vector<std::string>& hosts);

struct RankResult {
    trace::DriverReport report;  ///< whole on rank 0 only
    /// Some rank is lost or was left in the middle of something: the library cannot be closed in order.
    bool abandoned = false;
};

/// Runs to the end; all ranks call it. Rank 0 gives its recorder the rows of all. Throws what its recorder, kernels or
/// roles throw, and FabricError.
RankResult run_ranks(const trace::RunInput& input, Fabric& fabric);

}  // namespace rubato::exec
