// Messages with payload on their way over the modelled network: channels that are first in, first out, inbox slots, and
// a cap on concurrent transfers for each direction of a host's link, beyond which transfers queue first come, first
// served. (The cap is a property of the modelled cluster; it also keeps the max-min solver of SimGrid small.)
#pragma once

#include "sim/event_queue.hpp"
#include "sim/network.hpp"

namespace rubato::sim {

struct Flow {
    RoleId from = 0, to = 0;
    Channel channel = Channel::control;
    ActionId id = 0;
    Message message;
    Slice payload;
    double bytes = 0;
    Time sent_ns = 0;
    Time started_ns = 0;
    std::int32_t lane_index = -1;  ///< of its channel in the transport
    FlowId next = -1;              ///< behind it in the one queue in which it waits
};

class Transport {
public:
    /// cap: concurrent transfers for each direction of a host's link; 0: unlimited.
    Transport(Network& network, const std::vector<HostId>& host_of_role, int cap);

    FlowId create(const Flow& flow);
    Flow& operator[](FlowId id) { return flows_[static_cast<std::size_t>(id)]; }
    /// The flow has left its sender: moves it as soon as its channel, a slot and both links have room. Returns true
    /// where it has arrived at once (both ends on one host).
    bool submit(FlowId id, Time now);
    /// The transfer of a flow is over; its slot is taken. Starts what waited for its links and its channel.
    void arrived(FlowId id, Time now);
    void free(FlowId id) { free_.push_back(id); }
    /// Index of a channel, for the slot that a delivered buffer occupies.
    std::int32_t channel_of(FlowId id) const { return flows_[static_cast<std::size_t>(id)].lane_index; }
    void slot_freed(std::int32_t channel, Time now);
    /// Flows that arrived at once while others were started; the driver delivers them.
    std::vector<FlowId> take_local();

private:
    /// First in, first out, chained through the flows: of 10,000 workers' queues most are empty.
    struct Queue {
        FlowId head = -1, tail = -1;
        bool empty() const { return head < 0; }
    };
    struct ChannelState {
        Queue queue;
        bool moving = false;
        int slots = 1;
    };
    struct Link {
        int active = 0;
        Queue queue;
    };
    /// Both directions of a host's link.
    struct Port {
        Link up, down;
    };
    /// The six channels between a role and a lower one, side by side: the three that lead up to it come first.
    struct Pair {
        RoleId lower = -1;
        std::int32_t first = -1;  ///< in channels_
    };
    /// Pairs of a role. Most have one, with their server, so the first needs no memory elsewhere.
    struct Pairs {
        Pair first;
        std::vector<Pair> others;  ///< sorted by the lower role
    };

    std::int32_t channel_index(const Flow& flow);
    Pair new_pair(RoleId lower);
    void push(Queue& queue, FlowId id);
    FlowId pop(Queue& queue);
    void pump(std::int32_t channel, Time now);
    void admit(FlowId id, Time now);
    void start(FlowId id, Time now);
    void drain(Link& link, Time now);
    bool free_link(const Link& link) const { return cap_ == 0 || link.active < cap_; }
    Link& up(const Flow& flow) {
        return ports_[static_cast<std::size_t>(host_of_role_[static_cast<std::size_t>(flow.from)])].up;
    }
    Link& down(const Flow& flow) {
        return ports_[static_cast<std::size_t>(host_of_role_[static_cast<std::size_t>(flow.to)])].down;
    }

    Network& network_;
    std::vector<HostId> host_of_role_;
    int cap_;
    std::vector<Port> ports_;  ///< by host
    std::vector<Flow> flows_;
    std::vector<FlowId> free_;
    std::vector<ChannelState> channels_;
    std::vector<Pairs> pairs_;  ///< by role
    std::vector<FlowId> local_;
};

}  // namespace rubato::sim
