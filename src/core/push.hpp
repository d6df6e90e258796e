// The record of a gradient, which goes with it, or is told of without it. A part of core/message.hpp.
#pragma once

#include "core/types.hpp"

#include <string_view>

namespace rubato {

/// A gradient on its way to the version owner: the payload is the gradient (mean over the batch), this is its record.
/// Where a worker sums up several before it pushes, `batch` is cut into theirs, one after the other, and the payload is
/// the sum of the gradients, each weighted by its samples over those of the first. A relay passes the sum of several
/// pushes on in the same way, each record in a Push of its own, and the payload with the last one; without any payload
/// they are left over at the end of the run.
struct Push {
    static constexpr std::string_view kind = "push";
    /// Version of the weights that it was computed on, or from which the worker's own steps led to those.
    Version read_version = 0;
    std::int64_t worker_seq = 0;  ///< 0, 1, ... within its worker; the first one's of several
    Batch batch;
    Time pull_ns = 0;        ///< when the worker asked for (or began to wait for) the weights that it computed on
    Time begin_ns = 0;       ///< computation begins
    Time end_ns = 0;         ///< computation ends
    Time push_ns = 0;        ///< the send is handed to the transport
    double loss = 0;         ///< mean loss of the batch; 0 in timing-only runs
    std::int32_t count = 1;  ///< gradients in the sum; of one that is never pushed: those that were begun
    WorkerId worker = -1;
    bool operator==(const Push&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("read_version", self.read_version);
        field("worker_seq", self.worker_seq);
        field("batch", self.batch);
        field("pull_ns", self.pull_ns);
        field("begin_ns", self.begin_ns);
        field("end_ns", self.end_ns);
        field("push_ns", self.push_ns);
        field("loss", self.loss);
        field("count", Rare{self.count, 1});
        field("worker", Rare{self.worker, -1});
    }
};

}  // namespace rubato
