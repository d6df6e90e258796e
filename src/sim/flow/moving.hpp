// The transfers under way of the flow network, and the dates at which they end.
#pragma once

#include "sim/flow/min_heap.hpp"
#include "sim/network.hpp"

#include <vector>

namespace rubato::sim {

/// A transfer. Times are ns, rates bytes/ns.
struct MovingFlow {
    std::int64_t token = 0;
    std::uint64_t sequence = 0;  ///< of its start: which of two that end together comes first
    HostId from = 0, to = 0;
    double weight = 1;   ///< its share of a link is in proportion to it: 1 / latency in s
    double penalty = 1;  ///< 1 / weight
    double left = 0;     ///< bytes left at `since`; while it shares a hub: the hub's virtual time at which it ends
    double since = 0;
    double rate = 0;
    std::int32_t position = -1;             ///< in the heap that it is in
    std::int32_t hub = -1, leaf = -1;       ///< of HubSharing; a hub of -1: MaxMin has it
    std::int32_t next = -1, previous = -1;  ///< of the same leaf
    bool live = false;                      ///< it is under way
    bool shared = false;                    ///< in a hub's heap, not by itself among the ends
};

struct Moving {
    double clock = 0;  ///< virtual time, ns
    std::vector<MovingFlow> flows;
    std::vector<std::int32_t> free;
    MinHeap ends;                        ///< by date: of a flow, or ~hub for the next one of a hub
    std::vector<std::int32_t> hub_ends;  ///< position of each hub among the ends; -1: it has none

    MovingFlow& operator[](std::int32_t id) { return flows[static_cast<std::size_t>(id)]; }
    void place_end(std::int32_t id, std::int32_t position) {
        if (id >= 0)
            (*this)[id].position = position;
        else
            hub_ends[static_cast<std::size_t>(~id)] = position;
    }
    auto placer() {
        return [this](std::int32_t id, std::int32_t position) { place_end(id, position); };
    }
    std::int32_t take() {
        if (free.empty()) {
            flows.emplace_back();
            return static_cast<std::int32_t>(flows.size()) - 1;
        }
        const std::int32_t id = free.back();
        free.pop_back();
        return id;
    }
    /// Brings `left` of a flow that is by itself up to date.
    void advance(MovingFlow& flow) const {
        flow.left -= flow.rate * (clock - flow.since);
        if (!(flow.left > 0)) flow.left = 0;
        flow.since = clock;
    }
    /// The date at which a flow that is by itself ends, from `left`, which is up to date. Position -1: a new one.
    void schedule(std::int32_t id) {
        MovingFlow& flow = (*this)[id];
        const MinHeap::Item item{clock + (flow.left > 0 ? flow.left / flow.rate : 0), flow.sequence, id};
        if (flow.position < 0)
            ends.push(item, placer());
        else
            ends.update(static_cast<std::size_t>(flow.position), item, placer());
    }
    void unschedule(std::int32_t id) {
        MovingFlow& flow = (*this)[id];
        ends.erase(static_cast<std::size_t>(flow.position), placer());
        flow.position = -1;
    }
};

}  // namespace rubato::sim
