// The `mpi` backend: the same roles on the ranks of one program.
#pragma once

#include "exec/mpi/fabric.hpp"
#include "exec/mpi/wire.hpp"
#include "trace/recorder.hpp"
#include "trace/run_input.hpp"

#include <functional>
#include <string>
#include <vector>

namespace rubato::exec {

RankMap rank_map(const Scenario& scenario);

/// Where the roles run, by role; hosts: by rank.
std::vector<trace::Place> rank_places(const Scenario& scenario, const std::vector<std::string>& hosts);

/// A rank with its roles, for people.
std::string rank_text(const RankMap& map, const std::vector<std::string>& hosts, int rank);

struct RankResult {
    trace::DriverReport report;  ///< whole on rank 0 only
    /// Some rank is lost or was left in the middle of something: the library cannot be closed in order.
    bool abandoned = false;
};

/// Runs to the end; all ranks call it. Rank 0 gives its recorder the rows of all. Throws what its recorder, kernels or
/// roles throw, and FabricError.
RankResult run_ranks(const trace::RunInput& input, Fabric& fabric);

/// With other ranks before and after the run, where ranks wait for each other, too.
struct Patience {
    Fabric& fabric;
    Time limit_ns = 0;  ///< how long a rank may be silent
    /// Told of one that was for longer; -1: of some rank. From another thread and later, too: it owns what it uses.
    std::function<void(int rank, Time silence_ns)> lost;
};
/// All, before the run: each does its work, on another thread, and goes on when all have done theirs. Rank 0 gets the
/// texts of all, by rank. Ends the program where one stands still. The work must not throw.
std::vector<std::string> meet(const Patience& patience, const std::function<std::string()>& work);

// At the end of the program all but those whose run was abandoned take part.
/// Rank 0: does its last work, and tells the others meanwhile that it is alive.
void keep_alive(const Patience& patience, const std::function<void()>& work);
/// Rank 0: they may leave. Ends the program with this status where one does not answer.
void let_go(const Patience& patience, int status);
/// The others: wait until then. Ends the program where rank 0 is silent.
void wait_to_leave(const Patience& patience);
/// All, at the very end: the process has this status if the library waits for too long for another rank to be there.
void limit_farewell(const Patience& patience, int status);

}  // namespace rubato::exec
