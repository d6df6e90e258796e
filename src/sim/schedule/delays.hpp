// A trace of delays: who computed each gradient, and on which version. Anybody's records will do; gradients.csv of a
// run is one.
#pragma once

#include "core/types.hpp"

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rubato::sim {

/// The trace is wrong or cannot be followed; what() is one line with file and, where there is one, line.
struct ScheduleError : std::runtime_error {
    using std::runtime_error::runtime_error;
    ScheduleError(const std::string& file, std::int64_t line, const std::string& what)
        : std::runtime_error(file + ":" + std::to_string(line) + ": " + what) {}
};

struct Delay {
    WorkerId worker = 0;
    Version read_version = 0;
    std::int64_t line = 0;  ///< in the file
    /// Where its batch lay in the order of the samples, where the trace says it (data_epoch, data_first): the order in
    /// which workers were dealt their batches follows from it.
    std::int64_t data_epoch = -1, data_first = -1;
};

struct DelayTrace {
    std::string file;
    std::vector<Delay> gradients;   ///< [k]: the k-th that was accepted
    std::vector<Delay> unfinished;  ///< were dealt a batch and never accepted; at most one a worker, its last
    bool has_positions = false;     ///< every row tells where its batch lay
    std::uint64_t checksum = 0;     ///< 64-bit FNV-1a over the bytes of the file
};

/// Reads CSV with a header. Columns: `worker` and `read_version`; row k is the k-th accepted gradient. With a column
/// `seq`, as gradients.csv has it, rows are in its order and those with -1 were never accepted. Other columns are not
/// looked at. Throws ScheduleError: file, line, what was expected; a worker must be below `lambda`, and gradient k
/// cannot have read a version above k, since each update takes one gradient at least.
DelayTrace read_delays(const std::string& path, int lambda);

}  // namespace rubato::sim
