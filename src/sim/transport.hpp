// Messages with payload on their way over the modelled network: channels that are first in, first out, inbox slots, and
// a cap on concurrent transfers for each direction of a host's link, beyond which transfers queue first come, first
// served. (The cap is a property of the modelled cluster; it also keeps the max-min solver of SimGrid small.)
#pragma once

#include "sim/event_queue.hpp"
#include "sim/network.hpp"

#include <algorithm>
#include <utility>

namespace rubato::sim {

struct Flow {
    /// Where it is: not yet submitted, in its channel's queue, in a link's queue, or on its way.
    enum class State : std::uint8_t { none, created, queued, waiting, moving };
    RoleId from = 0, to = 0;
    Channel channel = Channel::control;
    State state = State::none;
    std::int32_t channel_index = -1;  ///< in the transport
    Due* due = nullptr;               ///< the delivery, scheduled when it arrives
    FlowId next = -1;                 ///< behind it in the one queue in which it waits
    double bytes = 0;
    Time started_ns = 0;
};

/// Its members run several times a message, hence inline.
class Transport {
public:
    /// Told of each flow that begins to move, so that the driver can fetch what it will need when the flow arrives.
    using OnStart = void (*)(void* driver, const Flow& flow);

    /// cap: concurrent transfers for each direction of a host's link; 0: unlimited.
    Transport(Network& network, const std::vector<HostId>& host_of_role, int cap, OnStart on_start, void* driver,
              int gradient_slots = 1);

    /// Reserves the flow's place in its channel's order; it moves after submit().
    FlowId create(const Flow& flow) {
        FlowId id;
        if (free_.empty()) {
            id = static_cast<FlowId>(flows_.size());
            flows_.push_back(flow);
        } else {
            id = free_.back();
            free_.pop_back();
            flows_[static_cast<std::size_t>(id)] = flow;
        }
        flows_[static_cast<std::size_t>(id)].channel_index = channel_index(flow);
        flows_[static_cast<std::size_t>(id)].state = Flow::State::created;
        return id;
    }
    Flow& operator[](FlowId id) { return flows_[static_cast<std::size_t>(id)]; }
    /// The flow has left its sender: moves it as soon as its channel, a slot and both links have room. Returns true
    /// where it has arrived at once (both ends on one host).
    bool submit(FlowId id, Time now) {
        const auto channel = (*this)[id].channel_index;
        (*this)[id].state = Flow::State::queued;
        push(channels_[static_cast<std::size_t>(channel)].queue, id);
        pump(channel, now);
        return has_local();
    }
    /// The transfer of a flow is over; its slot is taken. Starts what waited for its links and its channel.
    void arrived(FlowId id, Time now) {
        auto& flow = (*this)[id];
        const auto from = host_of(flow.from), to = host_of(flow.to);
        flow.state = Flow::State::none;
        if (from != to) {
            --port(from).up.active;
            --port(to).down.active;
        }
        const auto channel = flow.channel_index;
        free_.push_back(id);
        channels_[static_cast<std::size_t>(channel)].moving = false;
        pump(channel, now);
        drain(port(to).down, now);
        drain(port(from).up, now);
    }
    /// A delivered buffer of the channel was released.
    void slot_freed(std::int32_t channel, Time now) {
        ++channels_[static_cast<std::size_t>(channel)].slots;
        pump(channel, now);
    }
    /// No flow is anywhere.
    bool empty() const { return free_.size() == flows_.size(); }
    /// Whether a flow from or to the role is anywhere.
    bool any_of(RoleId role) const {
        return std::any_of(flows_.begin(), flows_.end(), [role](const Flow& flow) {
            return flow.state != Flow::State::none && (flow.from == role || flow.to == role);
        });
    }
    /// All flows of a role that has crashed, wherever they are, come to nothing: `lost` is called with each, and they
    /// are no more. Others move up.
    template <class F>
    void cut(RoleId role, Time now, F&& lost) {
        std::vector<FlowId> ended;
        for (FlowId id = 0; id < static_cast<FlowId>(flows_.size()); ++id) {
            const Flow& flow = (*this)[id];
            if (flow.state == Flow::State::none || (flow.from != role && flow.to != role)) continue;
            take_out(id);
            ended.push_back(id);
            lost(flow);
        }
        for (const FlowId id : ended) {
            (*this)[id].state = Flow::State::none;
            free_.push_back(id);
        }
        for (const FlowId id : ended) {
            const RoleId other = (*this)[id].from == role ? (*this)[id].to : (*this)[id].from;
            for (const RoleId end : {role, other})
                for (auto* link : {&port(host_of(end)).down, &port(host_of(end)).up}) drain(*link, now);
        }
    }
    /// Flows that arrived at once while others were started; the driver delivers them.
    /// Fetches what is kept of a role's first channels into the cache.
    void fetch(RoleId role) const { __builtin_prefetch(&pairs_[static_cast<std::size_t>(role)]); }
    bool has_local() const { return !local_.empty(); }
    std::vector<FlowId> take_local() { return std::exchange(local_, {}); }

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
    /// The six channels between a role and one that serves it, side by side: the three that lead to the former first.
    struct Pair {
        RoleId server = -1;
        std::int32_t first = -1;  ///< in channels_
    };
    /// Pairs of a role. Most have one, with their server, so the first needs no memory elsewhere.
    struct Pairs {
        Pair first;
        std::vector<Pair> others;  ///< sorted by the server
    };

    // The channel of weights has three slots, that of gradients as many as the protocol says: a worker computes on one
    // model while another is there to be computed on next, and one lands that is newer.
    std::int32_t channel_index(const Flow& flow) {
        // Role 0 serves all others; between those, relays come after whom they serve.
        const auto [low, high] = std::minmax(flow.from, flow.to);
        const RoleId server = low == 0 ? low : high;
        auto& pairs = pairs_[static_cast<std::size_t>(low == 0 ? high : low)];
        const auto place = (flow.from == server ? 0 : 3) + static_cast<std::int32_t>(flow.channel);
        if (pairs.first.server == server) return pairs.first.first + place;
        return pair_of(pairs, server).first + place;
    }
    /// Takes a flow out of the queue that it is in, or off its way.
    void take_out(FlowId id);
    void take_out_of(Queue& queue, FlowId id);
    Pair& pair_of(Pairs& pairs, RoleId server);
    Pair new_pair(RoleId server);
    void push(Queue& queue, FlowId id) {
        (*this)[id].next = -1;
        if (queue.empty())
            queue.head = id;
        else
            (*this)[queue.tail].next = id;
        queue.tail = id;
    }
    FlowId pop(Queue& queue) {
        const FlowId id = queue.head;
        queue.head = (*this)[id].next;
        return id;
    }
    void pump(std::int32_t channel, Time now) {
        auto& state = channels_[static_cast<std::size_t>(channel)];
        if (state.moving || state.slots == 0 || state.queue.empty()) return;
        const FlowId id = pop(state.queue);
        state.moving = true;
        --state.slots;
        admit(id, now);
    }
    void admit(FlowId id, Time now) {
        auto& flow = (*this)[id];
        const auto from = host_of(flow.from), to = host_of(flow.to);
        flow.state = Flow::State::waiting;
        if (from == to) {
            flow.started_ns = now;
            local_.push_back(id);
            return;
        }
        auto& up = port(from).up;
        auto& down = port(to).down;
        if (!has_room(up)) return push(up.queue, id);
        if (!has_room(down)) return push(down.queue, id);
        ++up.active;
        ++down.active;
        flow.state = Flow::State::moving;
        flow.started_ns = now;
        on_start_(driver_, flow);
        network_.transfer(from, to, flow.bytes, id);
    }
    // First come, first served among those that can move: one whose other link is full steps aside into that link's
    // queue.
    void drain(Link& link, Time now) {
        while (has_room(link) && !link.queue.empty()) admit(pop(link.queue), now);
        if (!link.queue.empty()) __builtin_prefetch(&flows_[static_cast<std::size_t>(link.queue.head)]);
    }
    bool has_room(const Link& link) const { return cap_ == 0 || link.active < cap_; }
    HostId host_of(RoleId role) const { return host_of_role_[static_cast<std::size_t>(role)]; }
    Port& port(HostId host) { return ports_[static_cast<std::size_t>(host)]; }

    Network& network_;
    std::vector<HostId> host_of_role_;
    int cap_;
    OnStart on_start_;
    void* driver_;
    int gradient_slots_;
    std::vector<Port> ports_;  ///< by host
    std::vector<Flow> flows_;
    std::vector<FlowId> free_;
    std::vector<ChannelState> channels_;
    std::vector<Pairs> pairs_;  ///< by role
    std::vector<FlowId> local_;
};

}  // namespace rubato::sim
