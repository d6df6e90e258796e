// The action of a sum that the driver takes by means of its own. A part of core/action.hpp.
#pragma once

#include "core/types.hpp"

#include <string_view>

namespace rubato {

/// Adds up elements [first, first + count) of the buffers that all workers name, as the driver's library has it (over
/// MPI: MPI_Iallreduce), beside all else that goes on; ends in Summed, for everybody with the same bits. Every worker
/// asks for the sums of a group in the same order; those of different groups may overtake each other. Takes over the
/// role's reference to `sum`, which nobody else has, and whose other elements stay as they are. A simulation has no
/// such library, and neither has a run in one process: scenarios that need it are refused there.
struct SumAll {
    static constexpr std::string_view kind = "sum-all";
    ActionId id = 0;
    std::int64_t number = 0;  ///< of the sum: the same for all workers, and for no other sum of the run
    std::int32_t group = 0;
    BufferId sum = no_buffer;
    std::int64_t first = 0, count = 0;  ///< count: never 0
    std::int32_t wish = 0;              ///< the largest of all workers' comes with the sum
    bool operator==(const SumAll&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("number", self.number);
        field("group", self.group);
        field("sum", self.sum);
        field("first", self.first);
        field("count", self.count);
        field("wish", self.wish);
    }
};

}  // namespace rubato
