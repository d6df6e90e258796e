// Max-min sharing on a star where all flows of a link go through one hub: O(log n) for each start and end.
//
// A hub is one direction of a host's link, a leaf the link at the other end of its flows. Flows whose leaf is wide
// share the hub by weight: its virtual time runs at the rate that a flow of weight 1 has (the level), so each has a
// virtual time at which it ends, and neither start nor end of another one changes that. Flows whose leaf is narrower
// than their share are pinned to it. A leaf goes over when the level passes its threshold, the level at which it is
// just full; leaves wait in two heaps by threshold.
#pragma once

#include "sim/flow/moving.hpp"
#include "sim/flow/tree_platform.hpp"

#include <limits>

namespace rubato::sim {

class HubSharing {
public:
    /// through_host_0: each transfer has host 0 at an end, so that links wider than the hub need not be looked at.
    HubSharing(Moving& moving, const TreePlatform& platform, bool through_host_0);

    /// Begins to share a flow that has `left` bytes and a weight. False, and nothing done: it would couple hubs.
    bool add(std::int32_t flow);
    /// Ends the next flow of a hub, at its date, or one by itself, which is no longer among the ends.
    std::int32_t end_next(std::int32_t hub);
    void end_pinned(std::int32_t flow);
    /// Takes out a flow that has not ended; `left` is bytes again.
    void remove(std::int32_t flow);
    /// Takes all flows off the hub that the link belongs to; `left` is bytes again. None where there is no such hub.
    void dissolve(LinkId link, std::vector<std::int32_t>& flows);

private:
    enum class State : std::uint8_t { wide, candidate, pinned };
    struct Leaf {
        double capacity = 0;
        double weight = 0;     ///< of each of its flows: they have one route
        double threshold = 0;  ///< level of the hub at which it is full
        LinkId link = -1;
        std::int32_t hub = -1;
        std::int32_t flows = 0;
        std::int32_t first = -1;     ///< of its flows, unless it is wide
        std::int32_t position = -1;  ///< among candidates or pinned
        State state = State::wide;
    };
    struct Hub {
        double capacity = 0;
        double time = 0;         ///< virtual
        double since = 0;        ///< the clock's time at which it was that
        double level = 0;        ///< rate of a flow of weight 1; infinite where all are pinned
        double weight = 0;       ///< of the flows that share
        double pinned_rate = 0;  ///< of all pinned leaves
        LinkId link = -1;
        std::int32_t flows = 0;
        std::int32_t leaves = 0;
        std::uint32_t steps = 0;  ///< since sums and virtual time were made anew
        MinHeap shared;           ///< flows by virtual end
        MinHeap candidates;       ///< leaves by threshold, least first
        MinHeap pinned;           ///< leaves by threshold, greatest first
    };

    static constexpr std::int32_t idle = -1;
    static constexpr double infinite = std::numeric_limits<double>::infinity();
    /// A leaf this close to its threshold may be on either side: rounding must not send it to and fro.
    static constexpr double slack = 1e-12;
    std::int32_t& use(LinkId link) { return use_[static_cast<std::size_t>(link)]; }
    Hub& hub_at(std::int32_t id) { return hubs_[static_cast<std::size_t>(id)]; }
    Leaf& leaf_at(std::int32_t id) { return leaves_[static_cast<std::size_t>(id)]; }
    std::int32_t find_hub(LinkId up, LinkId down);
    std::int32_t open_hub(LinkId link);
    std::int32_t open_leaf(std::int32_t hub, LinkId link);
    bool recenter(LinkId leaf);
    void join(std::int32_t hub, std::int32_t flow);
    void join_leaf(Hub& hub, std::int32_t leaf, std::int32_t flow);
    void leave(std::int32_t flow);
    void leave_leaf(Hub& hub, std::int32_t flow);
    void advance(Hub& hub) const {
        if (!hub.shared.empty()) hub.time += hub.level * (moving_.clock - hub.since);
        hub.since = moving_.clock;
    }
    void share(Hub& hub, std::int32_t flow);
    void unshare(Hub& hub, std::int32_t flow);
    void pin(Hub& hub, std::int32_t leaf);
    void unpin(Hub& hub, std::int32_t leaf);
    void rank(Hub& hub, std::int32_t leaf);
    void pace(const Leaf& leaf);
    static void find_level(Hub& hub) {
        if (!hub.shared.empty())
            hub.level = (hub.capacity - hub.pinned_rate) / hub.weight;
        else
            hub.level = hub.pinned_rate <= hub.capacity * (1 + slack) ? infinite : 0;
    }
    void settle(std::int32_t id);
    void renew(Hub& hub);

    Moving& moving_;
    const TreePlatform& platform_;
    bool skip_wide_ = false;
    HostId preferred_ = 0;           ///< whose link is the hub where either could be
    std::vector<std::int32_t> use_;  ///< of each link: idle, 2 * leaf, or 2 * hub + 1
    std::vector<Hub> hubs_;
    std::vector<Leaf> leaves_;
    std::vector<std::int32_t> free_hubs_, free_leaves_;
    std::vector<std::int32_t> moved_;
};

}  // namespace rubato::sim
