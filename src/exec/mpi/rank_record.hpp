// What a rank tells rank 0 at the end of a run.
#pragma once

#include "core/rows.hpp"
#include "trace/recorder.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace rubato::exec {

struct RankRecord {
    std::int64_t messages = 0, control_messages = 0, bytes = 0, bytes_in = 0;
    std::int64_t clock_residual_ns = 0;  ///< by how much the clock moved against that of rank 0 since the start
    std::vector<GradientRow> gradients;
    std::vector<WorkerRow> workers;
    std::vector<trace::ServerRow> relays;  ///< of a tree: all, as far as this rank has to do with them
};

/// As bytes, for another process of the same program.
std::string to_bytes(const RankRecord& record);
/// Throws std::logic_error where the bytes are not those of a record.
RankRecord record_from_bytes(std::string_view bytes);

}  // namespace rubato::exec
