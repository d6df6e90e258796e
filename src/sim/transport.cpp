#include "sim/transport.hpp"

namespace rubato::sim {

Transport::Transport(Network& network, const std::vector<HostId>& host_of_role, int cap, OnStart on_start, void* driver,
                     int gradient_slots)
    : network_(network),
      host_of_role_(host_of_role),
      cap_(cap),
      on_start_(on_start),
      driver_(driver),
      gradient_slots_(gradient_slots),
      pairs_(host_of_role.size()) {
    const auto hosts = static_cast<std::size_t>(*std::max_element(host_of_role.begin(), host_of_role.end())) + 1;
    ports_.resize(hosts);
}

void Transport::take_out(FlowId id) {
    const Flow& flow = (*this)[id];
    auto& channel = channels_[static_cast<std::size_t>(flow.channel_index)];
    if (flow.state == Flow::State::queued) take_out_of(channel.queue, id);
    if (flow.state == Flow::State::created || flow.state == Flow::State::queued) return;
    auto& up = port(host_of(flow.from)).up;
    auto& down = port(host_of(flow.to)).down;
    if (flow.state == Flow::State::moving) {
        --up.active;
        --down.active;
        network_.cancel(id);
    } else {
        take_out_of(up.queue, id);
        take_out_of(down.queue, id);
    }
    channel.moving = false;
    ++channel.slots;
}

void Transport::take_out_of(Queue& queue, FlowId id) {
    FlowId before = -1;
    for (FlowId at = queue.head; at >= 0; before = at, at = (*this)[at].next) {
        if (at != id) continue;
        (before < 0 ? queue.head : (*this)[before].next) = (*this)[id].next;
        if (queue.tail == id) queue.tail = before;
        return;
    }
}

Transport::Pair& Transport::pair_of(Pairs& pairs, RoleId server) {
    if (pairs.first.server < 0) return pairs.first = new_pair(server);
    auto found = std::lower_bound(pairs.others.begin(), pairs.others.end(), server,
                                  [](const Pair& pair, RoleId role) { return pair.server < role; });
    if (found == pairs.others.end() || found->server != server) found = pairs.others.insert(found, new_pair(server));
    return *found;
}

Transport::Pair Transport::new_pair(RoleId server) {
    const auto first = static_cast<std::int32_t>(channels_.size());
    channels_.resize(channels_.size() + 6);
    for (const int direction : {0, 3})
        for (const auto& [channel, slots] :
             {std::pair(Channel::weights, 3), std::pair(Channel::gradient, gradient_slots_)})
            channels_[static_cast<std::size_t>(first + direction + static_cast<int>(channel))].slots = slots;
    return {server, first};
}

}  // namespace rubato::sim
