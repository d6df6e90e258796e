// What roles say to each other. Typed alternatives, never one wide struct.
//
// `worker`, where a message has it, is whom it is of or for where a relay passes it on (topology "tree"); -1: its
// sender or receiver itself.
//
// Every alternative lists its fields in `each`, from which src/trace prints and reads it.
#pragma once

#include "core/averaging/messages.hpp"
#include "core/collective/messages.hpp"
#include "core/push.hpp"
#include "core/types.hpp"

#include <limits>
#include <string_view>
#include <variant>

namespace rubato {

/// How a worker hears that it may go on.
enum class Word : std::uint8_t {
    broadcast,  ///< with the weights, which the server sends by itself
    inquiry,    ///< in the answer to its inquiry, which follows its push at once
    ok          ///< the server says OK, and then the worker asks for the weights
};

/// What a relay says of several gradients of a sum at once, where nobody wants to know more of them: in timing-only
/// runs without gradients.csv. Instead of a Push each.
struct Briefs {
    static constexpr std::string_view kind = "briefs";
    struct Gradient {
        WorkerId worker = 0;
        std::int32_t samples = 0;
        std::int32_t read_version = 0, worker_seq = 0;
        bool operator==(const Gradient&) const = default;
        template <class Self, class F>
        static void each(Self& self, F&& field) {
            field("worker", self.worker);
            field("samples", self.samples);
            field("read_version", self.read_version);
            field("worker_seq", self.worker_seq);
        }
    };
    static constexpr std::int32_t most = 5;  ///< so that no message grows
    std::int32_t count = 0;
    Gradient gradients[most];
    bool operator==(const Briefs&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("count", self.count);
        for (std::int32_t i = 0; i < self.count && i < most; ++i) field("gradient", self.gradients[i]);
    }
};

/// Whether that is all there is to say of one, but for its times and which samples they were.
inline bool is_brief(const Push& push) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    return push.count == 1 && push.read_version <= most && push.worker_seq <= most;
}

/// As far as it is known.
inline Push record_of(const Briefs::Gradient& brief) {
    Push push;
    push.read_version = brief.read_version;
    push.worker_seq = brief.worker_seq;
    push.batch.count = brief.samples;
    push.worker = brief.worker;
    return push;
}

/// Worker to server: is there anything newer than version `have`? (Gupta et al. 2015, timestamp inquiry)
/// Shard 0 to the other ones: your part of the weights, once it is at least of version `have`.
struct Inquiry {
    static constexpr std::string_view kind = "inquiry";
    Version have = 0;
    WorkerId worker = -1;
    bool operator==(const Inquiry&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("have", self.have);
        field("worker", Rare{self.worker, -1});
    }
};

/// Server to worker: the version that you hold is current; compute on `batch`. Also the very first word to each worker.
struct Proceed {
    static constexpr std::string_view kind = "proceed";
    Version version = 0;
    Batch batch;
    Time held_ns = 0;          ///< time that the policy held the worker back
    Time queued_ns = 0;        ///< time that the request waited behind other work of the server
    double learning_rate = 0;  ///< of the worker's own steps, where it takes some
    bool onward = false;       ///< this exchange is without a pull: from the weights that your own steps led to
    WorkerId worker = -1;
    bool operator==(const Proceed&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
        field("batch", self.batch);
        field("held_ns", self.held_ns);
        field("queued_ns", self.queued_ns);
        field("learning_rate", Rare{self.learning_rate, 0});
        field("onward", Rare{self.onward, false});
        field("worker", Rare{self.worker, -1});
    }
};

/// Server to worker: the payload is the model at `version`. An empty batch means: keep it and wait; among shards only
/// the first one's says so, unless all deal alike. A shard to shard 0: its part of the model.
struct Weights {
    static constexpr std::string_view kind = "weights";
    Version version = 0;
    Batch batch;
    Time held_ns = 0;
    Time queued_ns = 0;
    double learning_rate = 0;
    WorkerId worker = -1;
    bool operator==(const Weights&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("version", self.version);
        field("batch", self.batch);
        field("held_ns", self.held_ns);
        field("queued_ns", self.queued_ns);
        field("learning_rate", Rare{self.learning_rate, 0});
        field("worker", Rare{self.worker, -1});
    }
};

/// Server to worker: you may go on; ask for the weights.
struct Ok {
    static constexpr std::string_view kind = "ok";
    Time held_ns = 0;
    Time queued_ns = 0;
    WorkerId worker = -1;
    bool operator==(const Ok&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("held_ns", self.held_ns);
        field("queued_ns", self.queued_ns);
        field("worker", Rare{self.worker, -1});
    }
};

/// Server to worker: gradient `worker_seq` is no longer wanted. One that is on its way already is none of its business.
struct Halt {
    static constexpr std::string_view kind = "halt";
    std::int64_t worker_seq = 0;
    WorkerId worker = -1;
    bool operator==(const Halt&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("worker_seq", self.worker_seq);
        field("worker", Rare{self.worker, -1});
    }
};

/// Worker to server: `gradient`, which names the worker where a relay passes it on, was begun and will never be pushed;
/// is there anything newer than version `have`?
struct GaveUp {
    static constexpr std::string_view kind = "gave-up";
    Version have = 0;
    Push gradient;
    bool operator==(const GaveUp&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("have", self.have);
        field("gradient", self.gradient);
    }
};

/// Server to worker: the run is over; answer with Bye once `replies` replies (Proceed or Weights) have come in all.
/// Channels are ordered each by itself, so a Stop may overtake a model that is still on its way.
///
/// Shard 0 to the other ones: go on until your weights are of `version`, and then end.
struct Stop {
    static constexpr std::string_view kind = "stop";
    static constexpr std::int64_t given_up = -1;  ///< averaging in rounds: the one under way was, for want of workers
    std::int64_t replies = 0;
    Version version = -1;
    bool operator==(const Stop&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("replies", self.replies);
        field("version", Rare{self.version, -1});
    }
};

/// Worker to server, its last word: how many pushes it sent in all, and whether a gradient was begun that is never
/// pushed, with its record; `gradient` names the worker where a relay passes it on.
struct Bye {
    static constexpr std::string_view kind = "bye";
    std::int64_t pushes = 0;
    bool cancelled = false;
    Push gradient;
    bool operator==(const Bye&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("pushes", self.pushes);
        field("cancelled", self.cancelled);
        field("gradient", self.gradient);
    }
};

/// Root to relays: nothing is left to deal, so pass on at once what you have, and what comes from now on.
struct Flush {
    static constexpr std::string_view kind = "flush";
    bool operator==(const Flush&) const = default;
    template <class Self, class F>
    static void each(Self&, F&&) {}
};

/// Root to the relay `relay`, which is above `worker`: in this round so many gradients come from below you, and not one
/// of each worker.
struct Round {
    static constexpr std::string_view kind = "round";
    RoleId relay = 0;
    std::int32_t gradients = 0;
    WorkerId worker = 0;
    bool operator==(const Round&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("relay", self.relay);
        field("gradients", self.gradients);
        field("worker", self.worker);
    }
};

/// Shard 0 to the other ones: after its first `pushes` pushes the worker gets no batch, and pushes nothing more.
struct Idle {
    static constexpr std::string_view kind = "idle";
    WorkerId worker = 0;
    std::int64_t pushes = 0;
    bool operator==(const Idle&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("worker", self.worker);
        field("pushes", self.pushes);
    }
};

/// A small one first: that is what an empty message is made of.
using Message = std::variant<Inquiry, Push, Proceed, Weights, Ok, Halt, GaveUp, Stop, Bye, Flush, Round, Briefs, Idle,
                             Model, Membership, Share, Exchange, Exchanged, Received, Gossip, Chunk, Computed, Iterated,
                             Made, BucketTimes, Pause, Onward>;

}  // namespace rubato
