#include "sim/flow/max_min.hpp"

#include <algorithm>

namespace rubato::sim {

namespace {

/// A link this full is taken for saturated: too many cost time, too few would be wrong.
constexpr double almost = 1 - 1e-9;
/// So much greater must the level of another flow be to be taken in.
constexpr double greater = 1 + 1e-9;
constexpr std::uint32_t steps_max = 1024;

}  // namespace

MaxMin::MaxMin(Moving& moving, const TreePlatform& platform)
    : moving_(moving), platform_(platform), stops_of_flow_(platform.longest_route()) {}

template <class F>
void MaxMin::each_link(std::int32_t flow, F&& call) {
    const std::int32_t begin = flow * stops_of_flow_;
    for (std::int32_t stop = begin; stop < begin + share_at(flow).stops; ++stop) call(stop_at(stop).link);
}

std::int32_t MaxMin::open_link(LinkId id) {
    std::int32_t& slot = slots_[static_cast<std::size_t>(id)];
    if (slot >= 0) return slot;
    if (free_links_.empty()) {
        free_links_.push_back(static_cast<std::int32_t>(links_.size()));
        links_.emplace_back();
    }
    slot = free_links_.back();
    free_links_.pop_back();
    Link& link = link_at(slot);
    link = {};
    link.capacity = platform_.bandwidth(id) * 1e-9;
    link.id = id;
    return slot;
}

/// Puts the flow on the links of its route, without a rate.
void MaxMin::enter(std::int32_t flow) {
    if (slots_.empty()) slots_.assign(platform_.links(), -1);
    if (shares_.size() < moving_.flows.size()) {
        shares_.resize(moving_.flows.size());
        stops_.resize(moving_.flows.size() * static_cast<std::size_t>(stops_of_flow_));
    }
    MovingFlow& moving = moving_[flow];
    moving.rate = 0;
    moving.since = moving_.clock;
    moving.position = moving.hub = -1;
    platform_.find_route(moving.from, moving.to, route_);
    share_at(flow) = {static_cast<std::int32_t>(route_.size()), 0, 0, false};
    std::int32_t stop = flow * stops_of_flow_;
    for (const LinkId id : route_) {
        const std::int32_t slot = open_link(id);
        Link& link = link_at(slot);
        stop_at(stop) = {slot, link.first, -1};
        if (link.first >= 0) stop_at(link.first).previous = stop;
        link.first = stop++;
        ++link.flows;
    }
}

void MaxMin::leave(std::int32_t flow) {
    const std::int32_t begin = flow * stops_of_flow_;
    for (std::int32_t id = begin; id < begin + share_at(flow).stops; ++id) {
        const Stop stop = stop_at(id);
        Link& link = link_at(stop.link);
        if (stop.previous >= 0)
            stop_at(stop.previous).next = stop.next;
        else
            link.first = stop.next;
        if (stop.next >= 0) stop_at(stop.next).previous = stop.previous;
        link.load -= moving_[flow].rate;
        ++link.steps;
        if (--link.flows > 0) continue;
        slots_[static_cast<std::size_t>(link.id)] = -1;
        free_links_.push_back(stop.link);
    }
}

void MaxMin::begin_round() {
    ++round_;
    solving_.clear();
    touched_.clear();
}

void MaxMin::take_in(std::int32_t flow) {
    Share& share = share_at(flow);
    if (share.round == round_) return;
    share.round = round_;
    solving_.push_back(flow);
}

/// Takes in all flows of the link.
void MaxMin::spread(std::int32_t id) {
    for (std::int32_t stop = link_at(id).first; stop >= 0; stop = stop_at(stop).next) take_in(stop / stops_of_flow_);
}

void MaxMin::add(const std::vector<std::int32_t>& flows) {
    begin_round();
    for (const std::int32_t flow : flows) {
        enter(flow);
        take_in(flow);
    }
    solve();
}

void MaxMin::remove(std::int32_t flow) {
    begin_round();
    each_link(flow, [&](std::int32_t id) {
        if (link_at(id).load >= link_at(id).capacity * almost) spread(id);
    });
    leave(flow);
    std::erase(solving_, flow);
    if (!solving_.empty()) solve();
}

void MaxMin::solve() {
    std::size_t known = 0;
    do {
        // Along saturated links, from flow to flow.
        for (; known < solving_.size(); ++known)
            each_link(solving_[known], [&](std::int32_t id) {
                Link& link = link_at(id);
                if (link.round != round_) {
                    link.round = round_;
                    link.spread = false;
                    touched_.push_back(id);
                }
                if (link.spread || link.load < link.capacity * almost) return;
                link.spread = true;
                spread(id);
            });
        prepare();
    } while (!fill());
    apply();
}

/// Sets what the flows that were taken in may share on their links.
void MaxMin::prepare() {
    for (const std::int32_t id : touched_) {
        Link& link = link_at(id);
        link.room = link.usage = 0;
        link.inside = 0;
    }
    for (const std::int32_t flow : solving_) {
        const MovingFlow& moving = moving_[flow];
        share_at(flow).open = true;
        each_link(flow, [&](std::int32_t id) {
            Link& link = link_at(id);
            link.room += moving.rate;
            link.usage += moving.weight;
            ++link.inside;
        });
    }
    queue_.clear();
    for (const std::int32_t id : touched_) {
        Link& link = link_at(id);
        link.open = link.inside;
        link.room = link.inside == link.flows ? link.capacity : std::max(0.0, link.capacity - link.load + link.room);
        if (link.open > 0) queue_.push_back({link.room / link.usage, id});
    }
}

/// Progressive filling: the link with the least level gives its flows their rates, then the next. False where flows
/// have been taken in on the way, so that all must be done again.
bool MaxMin::fill() {
    const auto later = [](const Candidate& a, const Candidate& b) {
        return a.level != b.level ? a.level > b.level : a.link > b.link;
    };
    std::make_heap(queue_.begin(), queue_.end(), later);
    while (!queue_.empty()) {
        std::pop_heap(queue_.begin(), queue_.end(), later);
        Candidate& least = queue_.back();
        Link& link = link_at(least.link);
        if (link.open == 0) {
            queue_.pop_back();
            continue;
        }
        // Levels only rise as flows get their rates.
        const double level = std::max(0.0, link.room) / link.usage;
        if (level > least.level) {
            least.level = level;
            std::push_heap(queue_.begin(), queue_.end(), later);
            continue;
        }
        const std::int32_t id = least.link;
        queue_.pop_back();
        if (!fix(id, least.level)) return false;
    }
    return true;
}

/// Gives the flows of a bottleneck their rates. False where others on it have a greater level, which are taken in.
bool MaxMin::fix(std::int32_t bottleneck, double level) {
    const Link& narrow = link_at(bottleneck);
    if (narrow.inside < narrow.flows) {
        const auto before = solving_.size();
        for (std::int32_t stop = narrow.first; stop >= 0; stop = stop_at(stop).next) {
            const std::int32_t flow = stop / stops_of_flow_;
            if (share_at(flow).round != round_ && moving_[flow].rate > level * moving_[flow].weight * greater)
                take_in(flow);
        }
        if (solving_.size() > before) return false;
    }
    for (std::int32_t stop = narrow.first; stop >= 0; stop = stop_at(stop).next) {
        const std::int32_t flow = stop / stops_of_flow_;
        Share& share = share_at(flow);
        if (share.round != round_ || !share.open) continue;
        const double weight = moving_[flow].weight;
        share.open = false;
        share.rate = level * weight;
        each_link(flow, [&](std::int32_t id) {
            Link& link = link_at(id);
            link.room -= share.rate;
            link.usage -= weight;
            --link.open;
        });
    }
    return true;
}

/// Gives the rates that were found, and the dates of the ends that follow.
void MaxMin::apply() {
    for (const std::int32_t flow : solving_) {
        MovingFlow& moving = moving_[flow];
        const double rate = share_at(flow).rate;
        const double change = rate - moving.rate;
        if (change == 0 && moving.position >= 0) continue;
        each_link(flow, [&](std::int32_t id) {
            link_at(id).load += change;
            ++link_at(id).steps;
        });
        moving_.advance(moving);
        moving.rate = rate;
        moving_.schedule(flow);
    }
    sum_loads();
}

/// Rounding errors of the loads are thrown away before they matter.
void MaxMin::sum_loads() {
    for (const std::int32_t id : touched_) {
        Link& link = link_at(id);
        if (link.inside < link.flows && (link.steps < steps_max || link.steps < static_cast<std::uint32_t>(link.flows)))
            continue;
        link.steps = 0;
        link.load = 0;
        for (std::int32_t stop = link.first; stop >= 0; stop = stop_at(stop).next)
            link.load += moving_[stop / stops_of_flow_].rate;
    }
}

}  // namespace rubato::sim
