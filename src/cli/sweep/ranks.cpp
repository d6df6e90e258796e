#include "cli/sweep/ranks.hpp"

#include "cli/error.hpp"

#include <cstdlib>

namespace rubato::cli {
namespace {

/// The number in a variable; -1 where there is none.
int number_in(const char* variable) {
    const char* text = std::getenv(variable);
    if (!text || !*text) return -1;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    return *end == '\0' && value >= 0 && value < 10'000'000 ? static_cast<int>(value) : -1;
}

struct Launcher {
    const char* rank;
    const char* size;
    const char* on_host;
};

constexpr Launcher launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                  {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
                                  // Of a step: a batch script itself has SLURM_PROCID as well, and is alone.
                                  {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}};

}  // namespace

Rank find_rank() {
    for (const Launcher& launcher : launchers) {
        const int rank = number_in(launcher.rank), size = number_in(launcher.size);
        if (rank < 0 || size < 2 || rank >= size) continue;
        const int on_host = number_in(launcher.on_host);
        return {rank, size, on_host > 0 ? on_host : size};
    }
    return {};
}

void require_single_copy(const std::string& command) {
    const int count = find_rank().count;
    if (count < 2) return;
    throw InputError(command + ": a launcher has started " + std::to_string(count) +
                     " copies, which would all do the same: expected a single one; run --backend mpi, sweep and "
                     "calibrate SCENARIO share their work between ranks");
}

}  // namespace rubato::cli
