#include "sim/transport.hpp"

#include <algorithm>
#include <utility>

namespace rubato::sim {

Transport::Transport(Network& network, const std::vector<HostId>& host_of_role, int cap)
    : network_(network), host_of_role_(host_of_role), cap_(cap), pairs_(host_of_role.size()) {
    const auto hosts = static_cast<std::size_t>(*std::max_element(host_of_role.begin(), host_of_role.end())) + 1;
    ports_.resize(hosts);
}

FlowId Transport::create(const Flow& flow) {
    FlowId id;
    if (free_.empty()) {
        id = static_cast<FlowId>(flows_.size());
        flows_.push_back(flow);
    } else {
        id = free_.back();
        free_.pop_back();
        flows_[static_cast<std::size_t>(id)] = flow;
    }
    flows_[static_cast<std::size_t>(id)].lane_index = channel_index(flow);
    return id;
}

// A worker computes on the model it was given until the next one has arrived whole, so the channel of weights has two
// slots (a double buffer); every other one has one.
std::int32_t Transport::channel_index(const Flow& flow) {
    const RoleId lower = std::min(flow.from, flow.to);
    auto& pairs = pairs_[static_cast<std::size_t>(std::max(flow.from, flow.to))];
    const auto place = (flow.from == lower ? 0 : 3) + static_cast<std::int32_t>(flow.channel);
    if (pairs.first.lower == lower) return pairs.first.first + place;
    if (pairs.first.lower < 0) return (pairs.first = new_pair(lower)).first + place;
    auto found = std::lower_bound(pairs.others.begin(), pairs.others.end(), lower,
                                  [](const Pair& pair, RoleId role) { return pair.lower < role; });
    if (found == pairs.others.end() || found->lower != lower) found = pairs.others.insert(found, new_pair(lower));
    return found->first + place;
}

Transport::Pair Transport::new_pair(RoleId lower) {
    const auto first = static_cast<std::int32_t>(channels_.size());
    channels_.resize(channels_.size() + 6);
    for (const int direction : {0, 3})
        channels_[static_cast<std::size_t>(first + direction + static_cast<int>(Channel::weights))].slots = 2;
    return {lower, first};
}

void Transport::push(Queue& queue, FlowId id) {
    (*this)[id].next = -1;
    if (queue.empty())
        queue.head = id;
    else
        (*this)[queue.tail].next = id;
    queue.tail = id;
}

FlowId Transport::pop(Queue& queue) {
    const FlowId id = queue.head;
    queue.head = (*this)[id].next;
    return id;
}

bool Transport::submit(FlowId id, Time now) {
    const auto channel = (*this)[id].lane_index;
    push(channels_[static_cast<std::size_t>(channel)].queue, id);
    pump(channel, now);
    return !local_.empty();
}

void Transport::pump(std::int32_t channel, Time now) {
    auto& state = channels_[static_cast<std::size_t>(channel)];
    if (state.moving || state.slots == 0 || state.queue.empty()) return;
    const FlowId id = pop(state.queue);
    state.moving = true;
    --state.slots;
    admit(id, now);
}

void Transport::admit(FlowId id, Time now) {
    auto& flow = (*this)[id];
    if (host_of_role_[static_cast<std::size_t>(flow.from)] == host_of_role_[static_cast<std::size_t>(flow.to)]) {
        flow.started_ns = now;
        local_.push_back(id);
        return;
    }
    if (!free_link(up(flow)))
        push(up(flow).queue, id);
    else if (!free_link(down(flow)))
        push(down(flow).queue, id);
    else
        start(id, now);
}

void Transport::start(FlowId id, Time now) {
    auto& flow = (*this)[id];
    ++up(flow).active;
    ++down(flow).active;
    flow.started_ns = now;
    network_.transfer(host_of_role_[static_cast<std::size_t>(flow.from)],
                      host_of_role_[static_cast<std::size_t>(flow.to)], flow.bytes, id);
}

void Transport::arrived(FlowId id, Time now) {
    auto& flow = (*this)[id];
    auto& from = up(flow);
    auto& to = down(flow);
    if (host_of_role_[static_cast<std::size_t>(flow.from)] != host_of_role_[static_cast<std::size_t>(flow.to)]) {
        --from.active;
        --to.active;
    }
    const auto channel = flow.lane_index;
    channels_[static_cast<std::size_t>(channel)].moving = false;
    pump(channel, now);
    drain(to, now);
    drain(from, now);
}

// First come, first served among those that can move: one whose other link is full steps aside into that link's queue.
void Transport::drain(Link& link, Time now) {
    while (free_link(link) && !link.queue.empty()) {
        admit(pop(link.queue), now);
    }
}

void Transport::slot_freed(std::int32_t channel, Time now) {
    ++channels_[static_cast<std::size_t>(channel)].slots;
    pump(channel, now);
}

std::vector<FlowId> Transport::take_local() {
    return std::exchange(local_, {});
}

}  // namespace rubato::sim
