// The events that are due, by time and then by the order of ties: (to, from, channel, sequence).
#pragma once

#include "core/event.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace rubato::sim {

/// A message or model that was asked to be sent; lives from its Send until it is taken.
using FlowId = std::int32_t;

/// Something that is due: an event for a role or, where flow >= 0, a flow that leaves its sender's apply lane. A
/// delivery also tells its sender, at the same time, that the message is taken.
struct alignas(64) Due {
    RoleId to = 0;
    RoleId sender = -1;  ///< role that `taken` goes to; -1: none
    FlowId flow = -1;
    std::int32_t job = -1;         ///< computation whose result the event carries,
    BufferId weights = no_buffer;  ///< and what it holds until then
    bool cancelled = false;
    Taken taken;
    Event event;
};

/// A Due stays where it is until it is freed.
class EventQueue {
public:
    /// Rank of a completion of the role's own actions among the channels: after all messages.
    static constexpr int own = 3;

    /// One event of an instant: that of the Due or, where `taken`, the notice to its sender.
    struct Item {
        std::uint64_t order;  ///< to (32 bits), from (30), channel (2)
        std::uint64_t sequence;
        Due* due;
        bool taken;
        bool operator<(const Item& other) const {
            return order != other.order ? order < other.order : sequence < other.sequence;
        }
    };

    /// A Due that is to be scheduled later, with neither sender nor flow nor job.
    Due& create() {
        if (free_.empty()) grow();
        Due& due = *free_.back();
        free_.pop_back();
        due.sender = due.flow = due.job = -1;
        due.cancelled = false;
        return due;
    }
    void schedule(Due& due, Time at, RoleId to, RoleId from, int channel) {
        due.to = to;
        const Key key{at, order_of(to, from, channel), next_++, &due};
        if (at == present_)
            now_.push_back(key);
        else
            insert(key);
    }
    /// A completion of an action of `role`.
    Due& complete(Time at, RoleId role) {
        Due& due = create();
        schedule(due, at, role, role, own);
        return due;
    }
    void cancel(Due& due) {
        due.cancelled = true;
        ++cancelled_;
    }

    /// Calls `f` for all that are scheduled and not cancelled, in no particular order; it may cancel them.
    template <class F>
    void each(F&& f) {
        for (const auto* keys : {&heap_, &now_})
            for (const Key& key : *keys)
                if (!key.due->cancelled) f(*key.due);
    }

    /// What is pushed for this time from now on need not go through the heap.
    void set_present(Time now) {
        if (now_.empty()) present_ = now;
    }
    /// Time of the earliest that is not cancelled; -1: none.
    Time next() {
        while (cancelled_ > 0 && !heap_.empty() && heap_.front().due->cancelled) free(*pop().due);
        if (heap_.empty()) return now_.empty() ? -1 : present_;
        return now_.empty() ? heap_.front().at : std::min(present_, heap_.front().at);
    }
    /// Takes out all that is due at `at`, the time of the earliest; each Due is to be freed once it and its notice are
    /// dealt with. Returns the only one, or null where `items` has several, in order.
    Due* take(Time at, std::vector<Item>& items) {
        if (at != present_) {
            for (const Key& later : now_) insert(later);
            now_.clear();
            present_ = at;
        }
        if (now_.empty()) {
            const Key first = pop();
            if (heap_.empty() || heap_.front().at != at) return first.due;
            now_.push_back(first);
        }
        while (!heap_.empty() && heap_.front().at == at) now_.push_back(pop());
        Due* const first = now_.front().due;
        const bool only = now_.size() == 1;
        if (!only) gather(items);
        now_.clear();
        return only ? first : nullptr;
    }
    /// Whether the delivery of a Due that has a notice comes before it.
    static bool delivery_first(const Due& due) { return due.to <= due.sender; }
    /// Calls `f(role)` for those whose events are likely next, and fetches the events.
    template <class F>
    void look_ahead(F&& f) const {
        const std::size_t few = std::min<std::size_t>(heap_.size(), 3);
        for (std::size_t i = 0; i < few; ++i) {
            fetch(*heap_[i].due);
            // Of a message between a worker and its server, the worker, which comes after it.
            f(std::max(static_cast<RoleId>(heap_[i].order >> 32),
                       static_cast<RoleId>(heap_[i].order >> 2 & 0x3fffffff)));
        }
    }
    /// Fetches a Due into the cache.
    static void fetch(const Due& due) {
        for (std::size_t line = 0; line < sizeof(Due); line += 64)
            __builtin_prefetch(reinterpret_cast<const char*>(&due) + line, 1);
    }
    void free(Due& due) {
        if (due.cancelled) --cancelled_;
        free_.push_back(&due);
    }

private:
    static constexpr std::size_t block = 256;
    static constexpr std::size_t arity = 4;  ///< shallower than a binary heap: fewer lines of memory are touched

    struct Key {
        Time at;
        std::uint64_t order;
        std::uint64_t sequence;
        Due* due;
        bool operator<(const Key& other) const {
            if (at != other.at) return at < other.at;
            if (order != other.order) return order < other.order;
            return sequence < other.sequence;
        }
    };

    static std::uint64_t order_of(RoleId to, RoleId from, int channel) {
        return (static_cast<std::uint64_t>(to) << 32) | (static_cast<std::uint64_t>(from) << 2) |
               static_cast<std::uint64_t>(channel);
    }
    /// All of the present and their notices, in order.
    void gather(std::vector<Item>& items) const {
        items.clear();
        for (const Key& key : now_) {
            items.push_back({key.order, key.sequence, key.due, false});
            if (const RoleId sender = key.due->sender; sender >= 0)
                items.push_back({order_of(sender, sender, own), key.sequence, key.due, true});
        }
        std::sort(items.begin(), items.end());
    }
    void grow() {
        blocks_.push_back(std::make_unique<Due[]>(block));
        for (std::size_t i = block; i-- > 0;) free_.push_back(&blocks_.back()[i]);
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
    Key pop() {
        const Key first = heap_.front();
        const Key last = heap_.back();
        heap_.pop_back();
        if (!heap_.empty()) sink(last);
        return first;
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
    std::vector<Key> now_;  ///< due at present_
    Time present_ = -1;
    std::vector<std::unique_ptr<Due[]>> blocks_;
    std::vector<Due*> free_;
    std::uint64_t next_ = 0;
    std::int64_t cancelled_ = 0;
};

}  // namespace rubato::sim
