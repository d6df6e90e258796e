// Whether a launcher (mpirun, srun) has started several of this program, and which one this is.
#pragma once

#include "learn/cores.hpp"

#include <string>

namespace rubato::cli {

struct Rank {
    int number = 0, count = 1;
    int on_host = 1;  ///< of them on this host, as far as the launcher tells
};

/// From the environment that Open MPI, MPICH, Intel MPI and Slurm's srun give each process.
Rank find_rank();

/// Throws InputError where a launcher has started several copies of a command that does not share its work.
void require_single_copy(const std::string& command);

using learn::usable_cores;

}  // namespace rubato::cli
