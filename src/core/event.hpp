// What a driver tells a role: the completion of an action it asked for, or a message.
#pragma once

#include "core/message.hpp"

#include <optional>

namespace rubato {

/// First event of every role. The role owns one reference to `weights`: the model at version 0, or, in a run that goes
/// on, at the version of the saved state; and to `trend`, which Save says of, where that state has one.
struct Start {
    static constexpr std::string_view kind = "start";
    BufferId weights = no_buffer;
    BufferId trend = no_buffer;
    bool operator==(const Start&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("weights", self.weights);
        field("trend", Rare{self.trend, no_buffer});
    }
};

/// A message lies in an inbox slot. The role owns one reference to payload.buffer; releasing it frees the slot.
struct Delivered {
    static constexpr std::string_view kind = "delivered";
    RoleId from = 0;
    Channel channel = Channel::control;
    Message message;
    Slice payload;
    Time sent_ns = 0;     ///< when the sender's role asked for the send
    Time started_ns = 0;  ///< when the transfer began to move (after queueing at links and lanes)
    bool operator==(const Delivered&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("from", self.from);
        field("channel", self.channel);
        field("message", self.message);
        field("payload", self.payload);
        field("sent_ns", self.sent_ns);
        field("started_ns", self.started_ns);
    }
};

/// Completion of Send: the whole message lies in an inbox slot of the receiver.
struct Taken {
    static constexpr std::string_view kind = "taken";
    ActionId id = 0;
    Time started_ns = 0;
    bool operator==(const Taken&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("started_ns", self.started_ns);
    }
};

/// A part of a Compute by layers is done: elements of `gradient` from `first` on, which do not change any more. The
/// reference to it comes with GradientReady.
struct LayerReady {
    static constexpr std::string_view kind = "layer-ready";
    ActionId id = 0;
    BufferId gradient = no_buffer;
    std::int64_t first = 0;
    Time begin_ns = 0;  ///< of the backward pass of that part
    Time end_ns = 0;
    bool operator==(const LayerReady&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("gradient", self.gradient);
        field("first", self.first);
        field("begin_ns", self.begin_ns);
        field("end_ns", self.end_ns);
    }
};

/// Completion of Compute. The role owns one reference to `gradient`.
struct GradientReady {
    static constexpr std::string_view kind = "gradient-ready";
    ActionId id = 0;
    BufferId gradient = no_buffer;
    Time begin_ns = 0;
    Time end_ns = 0;
    double loss = 0;
    bool operator==(const GradientReady&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("gradient", self.gradient);
        field("begin_ns", self.begin_ns);
        field("end_ns", self.end_ns);
        field("loss", self.loss);
    }
};

/// Completion of a Compute that Cancel reached in time. Nothing is owned.
struct Cancelled {
    static constexpr std::string_view kind = "cancelled";
    ActionId id = 0;
    Time begin_ns = 0;
    bool operator==(const Cancelled&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("begin_ns", self.begin_ns);
    }
};

/// Completion of Fold. The role owns one reference to `accumulator` (new if Fold named none).
struct Folded {
    static constexpr std::string_view kind = "folded";
    ActionId id = 0;
    BufferId accumulator = no_buffer;
    bool operator==(const Folded&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("accumulator", self.accumulator);
    }
};

/// Completion of Update. The role owns one reference to `weights`, the new version.
struct Applied {
    static constexpr std::string_view kind = "applied";
    ActionId id = 0;
    BufferId weights = no_buffer;
    bool operator==(const Applied&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("weights", self.weights);
    }
};

/// Completion of LocalStep. The role owns one reference to each of the two that is there.
struct Stepped {
    static constexpr std::string_view kind = "stepped";
    ActionId id = 0;
    BufferId local = no_buffer;
    BufferId sum = no_buffer;
    bool operator==(const Stepped&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("local", self.local);
        field("sum", self.sum);
    }
};

/// Completion of Place. The role owns one reference to `weights`.
struct Placed {
    static constexpr std::string_view kind = "placed";
    ActionId id = 0;
    BufferId weights = no_buffer;
    bool operator==(const Placed&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("weights", self.weights);
    }
};

/// Completion of Mix. The role owns one reference to `out`.
struct Mixed {
    static constexpr std::string_view kind = "mixed";
    ActionId id = 0;
    BufferId out = no_buffer;
    bool operator==(const Mixed&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("out", self.out);
    }
};

/// Completion of SumAll. The role owns one reference to `sum`.
struct Summed {
    static constexpr std::string_view kind = "summed";
    ActionId id = 0;
    BufferId sum = no_buffer;
    std::int32_t wish = 0;  ///< the largest of all workers'
    bool operator==(const Summed&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("sum", self.sum);
        field("wish", self.wish);
    }
};

/// Figures of one version. Errors are fractions in [0, 1]; what the model or the data cannot tell is empty.
struct Metrics {
    std::optional<double> valid_loss, valid_error, test_loss, test_error;
    std::optional<double> gradient_norm, suboptimality;  ///< analytic models
    bool operator==(const Metrics&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("valid_loss", self.valid_loss);
        field("valid_error", self.valid_error);
        field("test_loss", self.test_loss);
        field("test_error", self.test_error);
        field("gradient_norm", self.gradient_norm);
        field("suboptimality", self.suboptimality);
    }
};

/// Completion of Evaluate.
struct Evaluated {
    static constexpr std::string_view kind = "evaluated";
    ActionId id = 0;
    Metrics metrics;
    bool operator==(const Evaluated&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
        field("metrics", self.metrics);
    }
};

/// Completion of Save, whether or not the state could be written.
struct Saved {
    static constexpr std::string_view kind = "saved";
    ActionId id = 0;
    bool operator==(const Saved&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
    }
};

/// Completion of SetTimer. A late one is harmless.
struct TimerFired {
    static constexpr std::string_view kind = "timer-fired";
    ActionId id = 0;
    bool operator==(const TimerFired&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("id", self.id);
    }
};

/// Somebody asks for the end of the run (a signal); only the version owner is told. The run ends in order, with its
/// books.
struct Interrupted {
    static constexpr std::string_view kind = "interrupted";
    bool operator==(const Interrupted&) const = default;
    template <class Self, class F>
    static void each(Self&, F&&) {}
};

/// A role is gone and will not be heard of again; only the version owner is told. What it was dealt and never sent is
/// stated as cancelled.
struct PeerLost {
    static constexpr std::string_view kind = "peer-lost";
    RoleId peer = 0;
    bool operator==(const PeerLost&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("peer", self.peer);
    }
};

/// What the role runs on crashes: it forgets what it has, states what it had begun, and takes part in nothing until it
/// is Restarted. Only workers are told, and only in simulation; nothing that was on its way from or to it arrives.
struct Crashed {
    static constexpr std::string_view kind = "crashed";
    bool operator==(const Crashed&) const = default;
    template <class Self, class F>
    static void each(Self&, F&&) {}
};

/// The role runs again, with empty hands: the next word of the version owner brings weights.
struct Restarted {
    static constexpr std::string_view kind = "restarted";
    bool operator==(const Restarted&) const = default;
    template <class Self, class F>
    static void each(Self&, F&&) {}
};

/// A worker has crashed; the version owner is told. What the worker had begun and the owner has not received is stated
/// by the worker.
struct PeerDown {
    static constexpr std::string_view kind = "peer-down";
    RoleId peer = 0;
    std::int64_t begun = 0;  ///< gradients that the worker has begun in all
    bool operator==(const PeerDown&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("peer", self.peer);
        field("begun", self.begun);
    }
};

/// A worker that was down runs again; the version owner is told.
struct PeerBack {
    static constexpr std::string_view kind = "peer-back";
    RoleId peer = 0;
    bool operator==(const PeerBack&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("peer", self.peer);
    }
};

/// The run cannot go on (a deadlock, a lost peer) and nothing more will come: every role that has not finished states
/// what became of the gradients that it has and finishes. What else it asks for is not carried out.
struct Abandoned {
    static constexpr std::string_view kind = "abandoned";
    Status status = Status::stalled;
    bool operator==(const Abandoned&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("status", self.status);
    }
};

using Event = std::variant<Start, Delivered, Taken, GradientReady, Cancelled, Folded, Applied, Evaluated, Saved,
                           TimerFired, Interrupted, PeerLost, Abandoned, Stepped, Crashed, Restarted, PeerDown,
                           PeerBack, Placed, Mixed, LayerReady, Summed>;

}  // namespace rubato
