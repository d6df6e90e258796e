// The events that are due, by time and then by the order of ties: (to, from, channel, sequence).
#pragma once

#include "core/event.hpp"

#include <algorithm>
#include <memory>
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

/// Ids are used again once they are freed; a Due stays where it is until then.
class EventQueue {
public:
    /// Rank of a completion of the role's own actions among the channels: after all messages.
    static constexpr int own = 3;

    DueId push(Time at, RoleId to, RoleId from, int channel) {
        if (free_.empty()) grow();
        const DueId id = free_.back();
        free_.pop_back();
        auto& due = (*this)[id];
        due.to = to;
        due.flow = due.job = -1;
        due.cancelled = false;
        insert({at,
                (static_cast<std::uint64_t>(to) << 32) | (static_cast<std::uint64_t>(from) << 2) |
                    static_cast<std::uint64_t>(channel),
                next_++, id});
        return id;
    }
    Due& operator[](DueId id) {
        return blocks_[static_cast<std::size_t>(id) / block][static_cast<std::size_t>(id) % block];
    }

    /// Time of the earliest that is not cancelled; -1: none.
    Time next() {
        while (!heap_.empty() && (*this)[heap_.front().id].cancelled) free(pop());
        return heap_.empty() ? -1 : heap_.front().at;
    }
    /// Removes the earliest; free() it once it is dealt with.
    DueId pop() {
        const DueId id = heap_.front().id;
        const Key last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) sink(last);
        return id;
    }
    void free(DueId id) { free_.push_back(id); }

private:
    static constexpr std::size_t block = 256;
    static constexpr std::size_t arity = 4;  ///< shallower than a binary heap: fewer lines of memory are touched

    struct Key {
        Time at;
        std::uint64_t order;  ///< to (32 bits), from (30), channel (2)
        std::uint64_t sequence;
        DueId id;
        bool operator<(const Key& other) const {
            if (at != other.at) return at < other.at;
            if (order != other.order) return order < other.order;
            return sequence < other.sequence;
        }
    };

    void grow() {
        const auto first = blocks_.size() * block;
        blocks_.push_back(std::make_unique<Due[]>(block));
        for (std::size_t i = block; i-- > 0;) free_.push_back(static_cast<DueId>(first + i));
    }
    void insert(const Key& key) {
        std::size_t at = heap_.size();
        heap_.push_back(key);
        while (at > 0) {
            const std::size_t parent = (at - 1) / arity;
            if (!(key < heap_[parent])) break;
            heap_[at] = heap_[parent];
            at = parent;
        }
        heap_[at] = key;
    }
    /// Puts `key` in the place of the root.
    void sink(const Key& key) {
        std::size_t at = 0;
        while (true) {
            const std::size_t first = arity * at + 1;
            if (first >= heap_.size()) break;
            const std::size_t end = std::min(first + arity, heap_.size());
            std::size_t least = first;
            for (std::size_t child = first + 1; child < end; ++child)
                if (heap_[child] < heap_[least]) least = child;
            if (!(heap_[least] < key)) break;
            heap_[at] = heap_[least];
            at = least;
        }
        heap_[at] = key;
    }

    std::vector<Key> heap_;
    std::vector<std::unique_ptr<Due[]>> blocks_;
    std::vector<DueId> free_;
    std::uint64_t next_ = 0;
};

}  // namespace rubato::sim
