#include "sim/flow/hub_sharing.hpp"

#include <algorithm>

namespace rubato::sim {

namespace {

/// Rounding errors of sums and of the virtual time are thrown away after so many steps, or as many as there are flows.
constexpr std::uint32_t steps_max = 1024;

}  // namespace

HubSharing::HubSharing(Moving& moving, const TreePlatform& platform, bool through_host_0)
    : moving_(moving), platform_(platform), skip_wide_(through_host_0) {
    if (platform.star()) use_.assign(platform.links(), idle);
}

bool HubSharing::add(std::int32_t flow) {
    const MovingFlow& moving = moving_[flow];
    const std::int32_t hub = find_hub(2 * moving.from, 2 * moving.to + 1);
    if (hub < 0) return false;
    join(hub, flow);
    return true;
}

/// The hub of a flow over these links; it is opened where there is none; -1 where the flow would lie between two hubs.
std::int32_t HubSharing::find_hub(LinkId up, LinkId down) {
    const std::int32_t a = use(up);
    const std::int32_t b = use(down);
    if (a == idle && b == idle) return open_hub(up / 2 == preferred_ ? up : down);
    const auto is_hub = [](std::int32_t used) { return used != idle && used % 2 == 1; };
    const auto hub_of = [&](std::int32_t used) { return used == idle || is_hub(used) ? -1 : leaf_at(used / 2).hub; };
    if (is_hub(a) && (b == idle || hub_of(b) == a / 2)) return a / 2;
    if (is_hub(b) && (a == idle || hub_of(a) == b / 2)) return b / 2;
    // A pair of links whose leaf turns out to be the hub.
    if (b == idle && recenter(up)) return use(up) / 2;
    if (a == idle && recenter(down)) return use(down) / 2;
    return -1;
}

std::int32_t HubSharing::open_hub(LinkId link) {
    if (free_hubs_.empty()) {
        free_hubs_.push_back(static_cast<std::int32_t>(hubs_.size()));
        hubs_.emplace_back();
        moving_.hub_ends.push_back(-1);
    }
    const std::int32_t id = free_hubs_.back();
    free_hubs_.pop_back();
    Hub& hub = hub_at(id);
    hub.capacity = platform_.bandwidth(link) * 1e-9;
    hub.time = hub.weight = hub.pinned_rate = 0;
    hub.level = infinite;
    hub.since = moving_.clock;
    hub.link = link;
    hub.flows = hub.leaves = 0;
    hub.steps = 0;
    use(link) = 2 * id + 1;
    return id;
}

std::int32_t HubSharing::open_leaf(std::int32_t hub, LinkId link) {
    if (free_leaves_.empty()) {
        free_leaves_.push_back(static_cast<std::int32_t>(leaves_.size()));
        leaves_.emplace_back();
    }
    const std::int32_t id = free_leaves_.back();
    free_leaves_.pop_back();
    leaf_at(id) = {platform_.bandwidth(link) * 1e-9, 0, 0, link, hub, 0, -1, -1, State::wide};
    ++hub_at(hub).leaves;
    use(link) = 2 * id;
    return id;
}

/// Makes the hub of a leaf that is its only one.
bool HubSharing::recenter(LinkId link) {
    if (hub_at(leaf_at(use(link) / 2).hub).leaves != 1) return false;
    moved_.clear();
    dissolve(link, moved_);
    preferred_ = link / 2;
    const std::int32_t hub = open_hub(link);
    for (const std::int32_t flow : moved_) join(hub, flow);
    return true;
}

void HubSharing::join(std::int32_t id, std::int32_t flow) {
    MovingFlow& moving = moving_[flow];
    moving.hub = id;
    moving.leaf = -1;
    advance(hub_at(id));
    const LinkId hub_link = hub_at(id).link;
    const LinkId link = hub_link % 2 == 1 ? 2 * moving.from : 2 * moving.to + 1;
    const bool wide = platform_.bandwidth(link) * 1e-9 >= hub_at(id).capacity;
    if (!(wide && skip_wide_)) {
        const std::int32_t used = use(link);
        moving.leaf = used == idle ? open_leaf(id, link) : used / 2;
        ++leaf_at(moving.leaf).flows;
    }
    Hub& hub = hub_at(id);
    ++hub.flows;
    if (wide)
        share(hub, flow);
    else
        join_leaf(hub, moving.leaf, flow);
    settle(id);
}

std::int32_t HubSharing::end_next(std::int32_t id) {
    Hub& hub = hub_at(id);
    const MinHeap::Item next = hub.shared.top();
    hub.time = next.key;
    hub.since = moving_.clock;
    unshare(hub, next.id);
    leave(next.id);
    return next.id;
}

void HubSharing::end_pinned(std::int32_t flow) {
    advance(hub_at(moving_[flow].hub));
    leave(flow);
}

void HubSharing::remove(std::int32_t flow) {
    MovingFlow& moving = moving_[flow];
    Hub& hub = hub_at(moving.hub);
    advance(hub);
    if (moving.shared) {
        unshare(hub, flow);
    } else {
        moving_.advance(moving);
        moving_.unschedule(flow);
    }
    leave(flow);
    moving_[flow].hub = moving_[flow].leaf = -1;
}

/// The flow is in no heap any more.
void HubSharing::leave(std::int32_t flow) {
    const MovingFlow& moving = moving_[flow];
    const std::int32_t id = moving.hub;
    Hub& hub = hub_at(id);
    if (moving.leaf >= 0) leave_leaf(hub, flow);
    settle(id);
    if (--hub.flows > 0) return;
    use(hub.link) = idle;
    free_hubs_.push_back(id);
}

void HubSharing::dissolve(LinkId link, std::vector<std::int32_t>& flows) {
    if (use(link) == idle) return;
    const std::int32_t id = use(link) % 2 == 1 ? use(link) / 2 : leaf_at(use(link) / 2).hub;
    Hub& hub = hub_at(id);
    advance(hub);
    const auto first = flows.size();
    for (const auto& item : hub.shared.items()) flows.push_back(item.id);
    for (const auto& item : hub.pinned.items())
        for (std::int32_t flow = leaf_at(item.id).first; flow >= 0; flow = moving_[flow].next) flows.push_back(flow);
    // Neither the order nor the numbers may depend on how the flows lie in the heaps.
    std::sort(flows.begin() + static_cast<std::ptrdiff_t>(first), flows.end(),
              [&](std::int32_t a, std::int32_t b) { return moving_[a].sequence < moving_[b].sequence; });
    for (auto i = first; i < flows.size(); ++i) {
        MovingFlow& flow = moving_[flows[i]];
        if (flow.shared) {
            flow.left = std::max(0.0, (flow.left - hub.time) * flow.weight);
        } else {
            moving_.advance(flow);
            moving_.unschedule(flows[i]);
        }
        flow.shared = false;
        flow.position = flow.hub = -1;
        if (flow.leaf >= 0 && --leaf_at(flow.leaf).flows == 0) {
            use(leaf_at(flow.leaf).link) = idle;
            free_leaves_.push_back(flow.leaf);
        }
        flow.leaf = -1;
    }
    hub.shared.clear();
    hub.candidates.clear();
    hub.pinned.clear();
    settle(id);
    use(hub.link) = idle;
    free_hubs_.push_back(id);
}

void HubSharing::share(Hub& hub, std::int32_t id) {
    MovingFlow& flow = moving_[id];
    flow.shared = true;
    flow.left = hub.time + flow.left * flow.penalty;
    hub.weight += flow.weight;
    hub.shared.push({flow.left, flow.sequence, id},
                    [&](std::int32_t other, std::int32_t position) { moving_[other].position = position; });
}

void HubSharing::unshare(Hub& hub, std::int32_t id) {
    MovingFlow& flow = moving_[id];
    hub.shared.erase(static_cast<std::size_t>(flow.position),
                     [&](std::int32_t other, std::int32_t position) { moving_[other].position = position; });
    hub.weight = hub.shared.empty() ? 0 : hub.weight - flow.weight;
    flow.left = std::max(0.0, (flow.left - hub.time) * flow.weight);
    flow.shared = false;
    flow.position = -1;
}

/// Finds the level, moves leaves that it has passed, and sets the date of the next end.
void HubSharing::settle(std::int32_t id) {
    Hub& hub = hub_at(id);
    if (++hub.steps >= steps_max && hub.steps >= hub.shared.size()) renew(hub);
    find_level(hub);
    // Greatest first, so that none goes that has to come back: letting go of one raises the level.
    while (!hub.pinned.empty() && -hub.pinned.top().key > hub.level * (1 + slack)) {
        unpin(hub, hub.pinned.top().id);
        find_level(hub);
    }
    while (!hub.candidates.empty() && hub.candidates.top().key < hub.level * (1 - slack)) {
        pin(hub, hub.candidates.top().id);
        find_level(hub);
    }
    std::int32_t& position = moving_.hub_ends[static_cast<std::size_t>(id)];
    if (hub.shared.empty()) {
        if (position >= 0) moving_.ends.erase(static_cast<std::size_t>(position), moving_.placer());
        position = -1;
        return;
    }
    const MinHeap::Item& next = hub.shared.top();
    // Not by the level, so that the two divisions need not wait for each other.
    const double wait = (next.key - hub.time) * hub.weight / (hub.capacity - hub.pinned_rate);
    const MinHeap::Item item{moving_.clock + std::max(0.0, wait), next.tie, ~id};
    if (position < 0)
        moving_.ends.push(item, moving_.placer());
    else
        moving_.ends.update(static_cast<std::size_t>(position), item, moving_.placer());
}

/// What sums and differences have gathered in rounding errors is dropped, and virtual time begins anew.
void HubSharing::renew(Hub& hub) {
    hub.steps = 0;
    hub.weight = 0;
    for (auto& item : hub.shared.items()) {
        MovingFlow& flow = moving_[item.id];
        flow.left -= hub.time;
        item.key = flow.left;
        hub.weight += flow.weight;
    }
    hub.time = 0;
    hub.pinned_rate = 0;
    for (const auto& item : hub.pinned.items()) hub.pinned_rate += leaf_at(item.id).capacity;
}

}  // namespace rubato::sim
