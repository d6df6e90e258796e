// Value types that every room shares: time, identities, buffers and batches.
//
// The core sees the standard library only. It does no I/O, reads no clock, starts no thread and draws no random
// number: the same state and the same event always give the same actions.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace rubato {

/// Nanoseconds from the start of the run, virtual or wall: the engine cannot tell which.
using Time = std::int64_t;

/// Index of a role in the run: 0 is the server, 1 + w is worker w.
using RoleId = std::int32_t;

/// Index of a worker, 0 <= worker < lambda (the papers' learner).
using WorkerId = std::int32_t;

/// Number of updates that made these weights (the papers' timestamp); 0 is the initial model.
using Version = std::int64_t;

/// Identity of an asynchronous action within its role. It ends in exactly one completion event.
using ActionId = std::int64_t;

/// A buffer of the driver's pool; no_buffer stands for none.
using BufferId = std::int32_t;
inline constexpr BufferId no_buffer = -1;

/// `count` elements of `buffer` from element `first` on. A message without payload carries {no_buffer, 0, 0}.
struct Slice {
    BufferId buffer = no_buffer;
    std::int64_t first = 0;
    std::int64_t count = 0;
    bool operator==(const Slice&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("buffer", self.buffer);
        field("first", self.first);
        field("count", self.count);
    }
};

/// The samples of one gradient: `count` entries from position `first` of the sequence that the sampling mode defines
/// for `epoch` (learn/sampler.hpp maps positions to samples). count == 0 is no batch.
struct Batch {
    std::int32_t epoch = 0;
    std::int32_t count = 0;
    std::int64_t first = 0;
    bool operator==(const Batch&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("epoch", self.epoch);
        field("first", self.first);
        field("count", self.count);
    }
};

/// A field of an `each` list that texts leave out where it has its usual value, so that what never uses it reads as if
/// there were no such field.
template <class Value>
struct Rare {
    Value& value;
    std::remove_const_t<Value> usual;
};
template <class Value>
Rare(Value&, std::remove_const_t<Value>) -> Rare<Value>;

/// Channels between two roles; each is first in, first out in every backend.
enum class Channel : std::uint8_t { control, gradient, weights };

/// How a run ended; `finished` and `diverged` are said by the engine, the others by drivers.
enum class Status : std::uint8_t { finished, diverged, deadlock, stalled, peer_lost, interrupted, disk_full };

constexpr std::string_view name(Status status) {
    constexpr std::string_view names[] = {"finished",  "diverged",    "deadlock", "stalled",
                                          "peer_lost", "interrupted", "disk_full"};
    return names[static_cast<int>(status)];
}

}  // namespace rubato
