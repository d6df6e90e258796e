// The events that are due, by time and then by the order of ties: (to, from, channel, sequence).
#pragma once

#include "core/event.hpp"

#include <algorithm>
#include <vector>

namespace rubato::sim {

/// A message or model that was asked to be sent; lives from its Send until it is taken.
using FlowId = std::int32_t;

/// Something that is due: an event for a role or, where flow >= 0, a flow that leaves its sender's apply lane.
struct Due {
    Event event;
    RoleId to = 0;
    FlowId flow = -1;
    std::int32_t job = -1;  ///< computation whose result the event carries
    bool cancelled = false;
};
using DueId = std::int32_t;

class EventQueue {
public:
    /// Rank of a completion of the role's own actions among the channels: after all messages.
    static constexpr int own = 3;

    DueId push(Time at, RoleId to, RoleId from, int channel) {
        DueId id;
        if (free_.empty()) {
            id = static_cast<DueId>(slots_.size());
            slots_.emplace_back();
        } else {
            id = free_.back();
            free_.pop_back();
            auto& slot = slots_[static_cast<std::size_t>(id)];
            slot.flow = slot.job = -1;
            slot.cancelled = false;
        }
        slots_[static_cast<std::size_t>(id)].to = to;
        heap_.push_back({at, to, from, channel, id, next_++});
        std::push_heap(heap_.begin(), heap_.end(), later);
        return id;
    }
    Due& operator[](DueId id) { return slots_[static_cast<std::size_t>(id)]; }

    /// Time of the earliest that is not cancelled; -1: none.
    Time next() {
        while (!heap_.empty() && slots_[static_cast<std::size_t>(heap_.front().id)].cancelled) free(pop());
        return heap_.empty() ? -1 : heap_.front().at;
    }
    /// Removes the earliest; free() it once it is dealt with.
    DueId pop() {
        const DueId id = heap_.front().id;
        std::pop_heap(heap_.begin(), heap_.end(), later);
        heap_.pop_back();
        return id;
    }
    void free(DueId id) { free_.push_back(id); }

private:
    struct Key {
        Time at;
        RoleId to, from;
        std::int32_t channel;
        DueId id;
        std::uint64_t sequence;
    };
    static bool later(const Key& a, const Key& b) {
        if (a.at != b.at) return a.at > b.at;
        if (a.to != b.to) return a.to > b.to;
        if (a.from != b.from) return a.from > b.from;
        if (a.channel != b.channel) return a.channel > b.channel;
        return a.sequence > b.sequence;
    }

    std::vector<Key> heap_;
    std::vector<Due> slots_;
    std::vector<DueId> free_;
    std::uint64_t next_ = 0;
};

}  // namespace rubato::sim
