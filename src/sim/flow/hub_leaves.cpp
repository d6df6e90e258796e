// The leaves of a hub that are narrower than it: which of them are pinned, and what each flow of these gets.
#include "sim/flow/hub_sharing.hpp"

namespace rubato::sim {

void HubSharing::join_leaf(Hub& hub, std::int32_t id, std::int32_t flow) {
    Leaf& leaf = leaf_at(id);
    MovingFlow& moving = moving_[flow];
    moving.previous = -1;
    moving.next = leaf.first;
    if (leaf.first >= 0) moving_[leaf.first].previous = flow;
    leaf.first = flow;
    leaf.weight = moving.weight;
    leaf.threshold = leaf.capacity / (leaf.flows * leaf.weight);
    if (leaf.state == State::wide) {
        // Pinned at first wherever it may have to be: settle() then only lets go of leaves, each once.
        leaf.state = leaf.threshold < hub.level ? State::pinned : State::candidate;
        if (leaf.state == State::pinned) hub.pinned_rate += leaf.capacity;
    }
    rank(hub, id);
    if (leaf.state == State::candidate) return share(hub, flow);
    moving.shared = false;
    moving.rate = 0;
    moving.since = moving_.clock;
    moving.position = -1;
    pace(leaf);
}

void HubSharing::leave_leaf(Hub& hub, std::int32_t flow) {
    MovingFlow& moving = moving_[flow];
    Leaf& leaf = leaf_at(moving.leaf);
    --leaf.flows;
    if (leaf.state != State::wide) {
        if (moving.previous >= 0)
            moving_[moving.previous].next = moving.next;
        else
            leaf.first = moving.next;
        if (moving.next >= 0) moving_[moving.next].previous = moving.previous;
        leaf.threshold = leaf.flows > 0 ? leaf.capacity / (leaf.flows * leaf.weight) : 0;
        rank(hub, moving.leaf);
        if (leaf.state == State::pinned) {
            if (leaf.flows > 0)
                pace(leaf);
            else
                hub.pinned_rate = hub.pinned.empty() ? 0 : hub.pinned_rate - leaf.capacity;
        }
    }
    if (leaf.flows > 0) return;
    use(leaf.link) = idle;
    --hub.leaves;
    free_leaves_.push_back(moving.leaf);
}

void HubSharing::pin(Hub& hub, std::int32_t id) {
    Leaf& leaf = leaf_at(id);
    hub.candidates.erase(static_cast<std::size_t>(leaf.position),
                         [&](std::int32_t other, std::int32_t position) { leaf_at(other).position = position; });
    leaf.position = -1;
    leaf.state = State::pinned;
    rank(hub, id);
    hub.pinned_rate += leaf.capacity;
    for (std::int32_t flow = leaf.first; flow >= 0; flow = moving_[flow].next) {
        unshare(hub, flow);
        moving_[flow].rate = 0;
        moving_[flow].since = moving_.clock;
    }
    pace(leaf);
}

void HubSharing::unpin(Hub& hub, std::int32_t id) {
    Leaf& leaf = leaf_at(id);
    hub.pinned.erase(static_cast<std::size_t>(leaf.position),
                     [&](std::int32_t other, std::int32_t position) { leaf_at(other).position = position; });
    leaf.position = -1;
    leaf.state = State::candidate;
    rank(hub, id);
    hub.pinned_rate = hub.pinned.empty() ? 0 : hub.pinned_rate - leaf.capacity;
    for (std::int32_t flow = leaf.first; flow >= 0; flow = moving_[flow].next) {
        moving_.advance(moving_[flow]);
        moving_.unschedule(flow);
        share(hub, flow);
    }
}

/// Puts a leaf where its threshold belongs, or takes it out where it has no flow any more.
void HubSharing::rank(Hub& hub, std::int32_t id) {
    Leaf& leaf = leaf_at(id);
    const bool pinned = leaf.state == State::pinned;
    MinHeap& heap = pinned ? hub.pinned : hub.candidates;
    const auto place = [&](std::int32_t other, std::int32_t position) { leaf_at(other).position = position; };
    const MinHeap::Item item{pinned ? -leaf.threshold : leaf.threshold, static_cast<std::uint64_t>(leaf.link), id};
    if (leaf.flows == 0)
        heap.erase(static_cast<std::size_t>(leaf.position), place);
    else if (leaf.position < 0)
        heap.push(item, place);
    else
        heap.update(static_cast<std::size_t>(leaf.position), item, place);
}

/// Each flow of a pinned leaf has the same part of it.
void HubSharing::pace(const Leaf& leaf) {
    const double rate = leaf.capacity / leaf.flows;
    for (std::int32_t id = leaf.first; id >= 0; id = moving_[id].next) {
        MovingFlow& flow = moving_[id];
        if (flow.position >= 0 && flow.rate == rate) continue;
        moving_.advance(flow);
        flow.rate = rate;
        moving_.schedule(id);
    }
}

}  // namespace rubato::sim
