// Max-min sharing of the links of any routes, found anew only as far as a change reaches.
//
// Each flow has a bottleneck: a saturated link on which no flow has a greater level (rate / weight) than its own. What
// begins or ends changes the rates of flows that are joined to it by saturated links, and of no others, unless a link
// becomes saturated on which others have a greater level: then these are taken in too, and the rates found again.
#pragma once

#include "sim/flow/moving.hpp"
#include "sim/flow/tree_platform.hpp"

namespace rubato::sim {

class MaxMin {
public:
    MaxMin(Moving& moving, const TreePlatform& platform);

    /// Takes in flows with `left` bytes and a weight, all at once.
    void add(const std::vector<std::int32_t>& flows);
    /// Takes out a flow that has ended and is no longer among the ends.
    void remove(std::int32_t flow);
    /// Whether a flow of this solver is on the link.
    bool uses(LinkId link) const { return !slots_.empty() && slots_[static_cast<std::size_t>(link)] >= 0; }

private:
    /// A link that some flow uses. Rates are bytes/ns.
    struct Link {
        double capacity = 0;
        double load = 0;  ///< sum of the rates of its flows
        LinkId id = -1;
        std::int32_t first = -1;  ///< of the stops on it
        std::int32_t flows = 0;
        std::uint32_t steps = 0;  ///< since the load was summed anew
        std::uint64_t round = 0;  ///< in which the rest was set
        double room = 0;          ///< what flows that are being solved for may still share
        double usage = 0;         ///< sum of the weights of those that have no rate yet
        std::int32_t inside = 0;  ///< of its flows are being solved for
        std::int32_t open = 0;    ///< of these have no rate yet
        bool spread = false;      ///< all of its flows have been taken in
    };
    /// A flow on a link of its route: stop i of flow f is number f * stops_ + i.
    struct Stop {
        std::int32_t link = -1;
        std::int32_t next = -1, previous = -1;  ///< on the same link
    };
    struct Share {
        std::int32_t stops = 0;
        std::uint64_t round = 0;  ///< in which it was taken in
        double rate = 0;          ///< that is being found
        bool open = false;
    };

    Link& link_at(std::int32_t id) { return links_[static_cast<std::size_t>(id)]; }
    Share& share_at(std::int32_t id) { return shares_[static_cast<std::size_t>(id)]; }
    Stop& stop_at(std::int32_t id) { return stops_[static_cast<std::size_t>(id)]; }
    template <class F>
    void each_link(std::int32_t flow, F&& call);
    std::int32_t open_link(LinkId id);
    void enter(std::int32_t flow);
    void leave(std::int32_t flow);
    void begin_round();
    void take_in(std::int32_t flow);
    void spread(std::int32_t link);
    void solve();
    void prepare();
    bool fill();
    bool fix(std::int32_t link, double level);
    void apply();
    void sum_loads();

    Moving& moving_;
    const TreePlatform& platform_;
    std::int32_t stops_of_flow_;
    std::vector<std::int32_t> slots_;  ///< of each link that flows use, its place in links_; -1: none
    std::vector<Link> links_;
    std::vector<std::int32_t> free_links_;
    std::vector<Stop> stops_;
    std::vector<Share> shares_;  ///< by flow
    std::vector<LinkId> route_;
    std::uint64_t round_ = 0;
    std::vector<std::int32_t> solving_;  ///< flows taken in
    std::vector<std::int32_t> touched_;  ///< their links
    struct Candidate {
        double level;
        std::int32_t link;
    };
    std::vector<Candidate> queue_;  ///< a heap of links by level
};

}  // namespace rubato::sim
