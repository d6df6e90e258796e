#include "sim/flow/flow_network.hpp"

#include "sim/flow/hub_sharing.hpp"
#include "sim/flow/max_min.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace rubato::sim {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

Time to_time(double ns) {
    if (!(ns < 9e18))
        throw PlatformError("virtual time would pass 285 years: is a bandwidth or latency in the wrong unit?");
    return static_cast<Time>(ns + 0.5);  // not llround, a call for each event
}

/// Whether the promise of `through_server` speaks of the server's host.
bool server_is_first(const ClusterSpec& cluster) {
    return cluster.platform.empty() || cluster.server_host.empty();
}

class FlowNetwork final : public Network {
public:
    explicit FlowNetwork(const NetworkRequest& request)
        : platform_(request),
          hubs_(moving_, platform_, request.through_server && server_is_first(request.scenario->cluster)),
          solver_(moving_, platform_),
          hosts_(static_cast<HostId>(platform_.hosts().size())) {}

    const std::vector<HostInfo>& hosts() const override { return platform_.hosts(); }
    Time now() const override { return now_; }
    void at(Time when) override {
        if (!stopped_) alarm_ = std::max(static_cast<double>(when), moving_.clock);
    }
    bool reach(Time when) override {
        at(when);
        if (stopped_ || next_begin() <= alarm_ || next_end() < alarm_) return false;
        go_to(std::exchange(alarm_, never));
        return true;
    }
    void transfer(HostId from, HostId to, double bytes, std::int64_t token) override;
    void cancel(std::int64_t token) override;
    void degrade(const std::string& link, double bandwidth_factor, double latency_factor) override;
    Time control_delay(HostId from, HostId to, double bytes) override;
    void run(NetworkSink& sink) override;
    void stop() override { stopped_ = true; }
    std::pair<double, double> route(HostId from, HostId to) override {
        check(from, to);
        return {platform_.narrowest(from, to), platform_.latency(from, to)};
    }
    double common_bandwidth(const std::vector<HostId>& from, HostId to) override {
        return platform_.common_bandwidth(from, to);
    }
    const std::vector<std::string>& warnings() const override { return warnings_; }

private:
    void check(HostId from, HostId to) const {
        if (from < 0 || to < 0 || from >= hosts_ || to >= hosts_) refuse(from, to);
    }
    [[noreturn]] void refuse(HostId from, HostId to) const;
    double next_begin() const { return begins_.empty() ? never : begins_.top().key; }
    double next_end() const { return moving_.ends.empty() ? never : moving_.ends.top().key; }
    void go_to(double date) {
        now_ = to_time(date);
        moving_.clock = date;
    }
    void activate(NetworkSink& sink);
    void end_next(NetworkSink& sink);
    void report(NetworkSink& sink, std::int32_t flow);
    void couple(std::int32_t flow);
    /// Takes a flow that has its latency behind it out of the sharing.
    void take_out(std::int32_t flow);
    void share(std::int32_t flow);

    TreePlatform platform_;
    Moving moving_;
    HubSharing hubs_;
    MaxMin solver_;
    HostId hosts_;
    MinHeap begins_;  ///< flows in their latency, by the date at which they begin to share
    std::vector<std::string> warnings_;
    std::vector<std::int32_t> coupled_;
    std::uint64_t next_ = 0;
    double alarm_ = never;
    Time now_ = 0;
    bool stopped_ = false;
};

void FlowNetwork::refuse(HostId from, HostId to) const {
    throw PlatformError("a route between hosts " + std::to_string(from) + " and " + std::to_string(to) +
                        " of a platform with " + std::to_string(hosts_));
}

void FlowNetwork::transfer(HostId from, HostId to, double bytes, std::int64_t token) {
    if (stopped_) return;
    check(from, to);
    const std::int32_t id = moving_.take();
    MovingFlow& flow = moving_[id];
    const double latency = platform_.latency(from, to);
    flow.token = token;
    flow.live = true;
    flow.sequence = next_++;
    flow.from = from;
    flow.to = to;
    // A route without latency has a weight of 1 in SimGrid, as one of a second.
    flow.penalty = latency > 0 ? latency : 1;
    flow.weight = 1 / flow.penalty;
    flow.left = std::nearbyint(bytes);
    flow.position = flow.hub = flow.leaf = -1;
    flow.shared = false;
    begins_.push({moving_.clock + latency * 1e9, flow.sequence, id}, [](std::int32_t, std::int32_t) {});
}

Time FlowNetwork::control_delay(HostId from, HostId to, double bytes) {
    const auto [bandwidth, latency] = route(from, to);
    const double delay = (latency + bytes / bandwidth) * 1e9;
    return to_time(delay);
}

void FlowNetwork::run(NetworkSink& sink) {
    try {
        while (!stopped_) {
            const double begin = next_begin(), end = next_end();
            if (begin <= end && begin <= alarm_) {
                if (begin == never) return;
                activate(sink);
            } else if (alarm_ <= end) {
                go_to(alarm_);
                alarm_ = never;
                sink.on_alarm();
            } else {
                end_next(sink);
            }
        }
    } catch (...) {
        stopped_ = true;
        throw;
    }
}

/// The latency of a transfer has passed.
void FlowNetwork::activate(NetworkSink& sink) {
    const auto [date, sequence, id] = begins_.top();
    begins_.pop([](std::int32_t, std::int32_t) {});
    go_to(date);
    const MovingFlow& flow = moving_[id];
    if (flow.from == flow.to) return report(sink, id);
    share(id);
}

void FlowNetwork::share(std::int32_t id) {
    const MovingFlow& flow = moving_[id];
    const bool general =
        !platform_.star() || solver_.uses(2 * flow.from) || solver_.uses(2 * flow.to + 1) || !hubs_.add(id);
    if (general) couple(id);
}

void FlowNetwork::take_out(std::int32_t id) {
    if (moving_[id].hub >= 0) return hubs_.remove(id);
    moving_.advance(moving_[id]);
    moving_.unschedule(id);
    solver_.remove(id);
}

void FlowNetwork::cancel(std::int64_t token) {
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(moving_.flows.size()); ++id) {
        if (!moving_[id].live || moving_[id].token != token) continue;
        const auto waiting = begins_.items();
        const auto begin =
            std::find_if(waiting.begin(), waiting.end(), [&](const auto& item) { return item.id == id; });
        if (begin != waiting.end())
            begins_.erase(begins_.first() + static_cast<std::size_t>(begin - waiting.begin()),
                          [](std::int32_t, std::int32_t) {});
        else
            take_out(id);
        moving_[id].live = false;
        moving_.free.push_back(id);
        return;
    }
}

// All that moves is shared anew: it happens seldom.
void FlowNetwork::degrade(const std::string& link, double bandwidth_factor, double latency_factor) {
    if (latency_factor != 1)
        throw PlatformError("cluster.network.model \"flow\" cannot change the latency of a link (\"" + link +
                            "\") in a run; \"simgrid\" can");
    std::vector<std::int32_t> sharing;
    for (std::int32_t id = 0; id < static_cast<std::int32_t>(moving_.flows.size()); ++id)
        if (moving_[id].live) sharing.push_back(id);
    for (const auto& item : begins_.items()) std::erase(sharing, item.id);
    std::sort(sharing.begin(), sharing.end(),
              [&](std::int32_t a, std::int32_t b) { return moving_[a].sequence < moving_[b].sequence; });
    for (const std::int32_t id : sharing) take_out(id);
    platform_.scale_bandwidth(link, bandwidth_factor);
    for (const std::int32_t id : sharing) share(id);
}

/// Hands a flow to the general solver, and with it the hubs that it couples.
void FlowNetwork::couple(std::int32_t id) {
    coupled_.clear();
    if (platform_.star()) {
        hubs_.dissolve(2 * moving_[id].from, coupled_);
        hubs_.dissolve(2 * moving_[id].to + 1, coupled_);
    }
    coupled_.push_back(id);
    solver_.add(coupled_);
}

void FlowNetwork::end_next(NetworkSink& sink) {
    const auto [date, sequence, id] = moving_.ends.top();
    go_to(date);
    if (id < 0) return report(sink, hubs_.end_next(~id));
    moving_.unschedule(id);
    if (moving_[id].hub >= 0)
        hubs_.end_pinned(id);
    else
        solver_.remove(id);
    report(sink, id);
}

void FlowNetwork::report(NetworkSink& sink, std::int32_t id) {
    const std::int64_t token = moving_[id].token;
    moving_[id].live = false;
    moving_.free.push_back(id);
    sink.on_transfer(token, true);
}

}  // namespace

std::unique_ptr<Network> open_flow_network(const NetworkRequest& request) {
    const NetworkSpec& network = request.scenario->cluster.network;
    if (network.simgrid != "CM02")
        throw PlatformError("cluster.network.simgrid is \"" + network.simgrid +
                            "\", a model of SimGrid's; cluster.network.model \"flow\" shares links as \"CM02\" does");
    if (network.tcp_gamma)
        throw PlatformError("cluster.network.tcp_gamma is SimGrid's; cluster.network.model \"flow\" has no TCP window");
    return std::make_unique<FlowNetwork>(request);
}

}  // namespace rubato::sim
