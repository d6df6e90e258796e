// What workers without a server say to each other, and to the monitor of their run. A part of core/message.hpp.
#pragma once

#include "core/push.hpp"
#include "core/types.hpp"

#include <string_view>

namespace rubato {

/// Worker to worker: a part of an allreduce, which is the payload: the sum of some contributions, or, in the algorithm
/// "ordered", the sender's own one, of which `weight` says how much it counts.
struct Chunk {
    static constexpr std::string_view kind = "chunk";
    std::int64_t number = 0;  ///< of the allreduce: 0, 1, ... of the run
    double weight = 1;
    std::int32_t wish = 0;  ///< the largest delay that somebody wants whose contribution is in it
    bool operator==(const Chunk&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("number", self.number);
        field("weight", self.weight);
        field("wish", Rare{self.wish, 0});
    }
};

/// Worker to monitor: a gradient is computed. It is never pushed to anybody.
struct Computed {
    static constexpr std::string_view kind = "computed";
    std::int64_t iteration = 0;
    Push gradient;
    bool operator==(const Computed&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("iteration", self.iteration);
        field("gradient", self.gradient);
    }
};

/// Worker to monitor: an iteration of its loop is over.
struct Iterated {
    static constexpr std::string_view kind = "iterated";
    std::int64_t iteration = 0;
    std::int32_t delay = 0;      ///< by which gradients were applied
    std::int32_t in_flight = 0;  ///< allreduces under way when it began
    Time begin_ns = 0;           ///< it begins to compute
    Time computed_ns = 0;        ///< the whole gradient is there
    Time waited_ns = 0;          ///< of that iteration it waited for allreduces so long: communication that is exposed
    Time end_ns = 0;             ///< what was to be applied in it is
    Version version = 0;         ///< then
    bool operator==(const Iterated&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("iteration", self.iteration);
        field("delay", self.delay);
        field("in_flight", self.in_flight);
        field("begin_ns", self.begin_ns);
        field("computed_ns", self.computed_ns);
        field("waited_ns", self.waited_ns);
        field("end_ns", self.end_ns);
        field("version", self.version);
    }
};

/// Worker 0 to monitor: its replica is of that version since then. All replicas are alike, or will be.
struct Made {
    static constexpr std::string_view kind = "made";
    Version version = 0;
    Time time_ns = 0;
    double learning_rate = 0;
    bool savable = false;  ///< the monitor is sent its weights, and the state that belongs to them is kept
    bool held = false;     ///< nothing is in flight, and workers hold for its evaluation
    bool operator==(const Made&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
        field("time_ns", self.time_ns);
        field("learning_rate", self.learning_rate);
        field("savable", Rare{self.savable, false});
        field("held", Rare{self.held, false});
    }
};

/// Monitor to worker: who holds at that version, for its evaluation, goes on.
struct Onward {
    static constexpr std::string_view kind = "onward";
    Version version = 0;
    bool operator==(const Onward&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
    }
};

/// Worker to monitor: what became of a bucket of layers of a gradient.
struct BucketTimes {
    static constexpr std::string_view kind = "bucket-times";
    std::int64_t iteration = 0;
    std::int32_t bucket = 0;
    Time gradient_begin_ns = 0, gradient_end_ns = 0;  ///< of the part of the backward pass
    Time reduce_begin_ns = 0, reduce_end_ns = 0;      ///< the allreduce
    Time apply_begin_ns = 0, apply_end_ns = 0;
    bool operator==(const BucketTimes&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("iteration", self.iteration);
        field("bucket", self.bucket);
        field("gradient_begin_ns", self.gradient_begin_ns);
        field("gradient_end_ns", self.gradient_end_ns);
        field("reduce_begin_ns", self.reduce_begin_ns);
        field("reduce_end_ns", self.reduce_end_ns);
        field("apply_begin_ns", self.apply_begin_ns);
        field("apply_end_ns", self.apply_end_ns);
    }
};

/// Monitor to worker: begin no iteration until you hear more, and say how many you have begun. Worker to monitor: so
/// many.
struct Pause {
    static constexpr std::string_view kind = "pause";
    std::int64_t begun = 0;
    bool operator==(const Pause&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("begun", self.begun);
    }
};

}  // namespace rubato
