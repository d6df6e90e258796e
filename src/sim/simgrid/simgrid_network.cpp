// The network model over SimGrid: no actor; transfers and one timer run in the kernel's own context.
//
// Only SimGrid's public interface here; timers and the kernel's own state are simgrid_kernel.cpp's.
#include "sim/network.hpp"
#include "sim/platform/no_such.hpp"
#include "sim/simgrid/simgrid_kernel.hpp"
#include "sim/simgrid/simgrid_platform.hpp"

#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace rubato::sim {

namespace {

namespace s4u = simgrid::s4u;

bool engine_in_use = false;
class SimgridNetwork;
SimgridNetwork* open_network_value = nullptr;  ///< the one that is open
bool something_went_off = false;               ///< a host or link, once; before, routes need not be looked at

Time to_ns(double seconds) {
    if (!(seconds < 9e9))
        throw PlatformError("virtual time would pass 285 years: is a bandwidth or latency in the wrong unit?");
    return std::llround(seconds * 1e9);
}

class SimgridNetwork final : public Network {
public:
    explicit SimgridNetwork(const NetworkRequest& request);
    ~SimgridNetwork() override;
    SimgridNetwork(const SimgridNetwork&) = delete;
    SimgridNetwork& operator=(const SimgridNetwork&) = delete;

    const std::vector<HostInfo>& hosts() const override { return platform_->infos; }
    Time now() const override { return to_ns(s4u::Engine::get_clock() - start_); }
    void at(Time when) override;
    void transfer(HostId from, HostId to, double bytes, std::int64_t token) override;
    void cancel(std::int64_t token) override;
    void degrade(const std::string& link, double bandwidth_factor, double latency_factor) override;
    Time next_change() override;
    Time control_delay(HostId from, HostId to, double bytes) override;
    void run(NetworkSink& sink) override;
    void stop() override;
    std::pair<double, double> route(HostId from, HostId to) override;
    double common_bandwidth(const std::vector<HostId>& from, HostId to) override;
    const std::vector<std::string>& warnings() const override { return platform_->warnings; }

private:
    /// A transfer under way. The activity must outlive its own callback, so flows retire before they are used again.
    struct Flow {
        SimgridNetwork* network = nullptr;
        std::int64_t token = 0;
        s4u::CommPtr comm;
        bool active = false;
        HostId from = 0, to = 0;
    };
    /// What the platform says of a link.
    struct Whole {
        double bandwidth, latency;
    };

    struct KnownRoute {
        std::int32_t key;  ///< 2 * the lower host, + 1 where the route leads away from it
        Route route;
    };

    static void connect_once();
    static void completed(const s4u::Activity& activity);
    s4u::Host& host(HostId id) const { return *platform_->hosts.at(static_cast<std::size_t>(id)); }
    const Route& cached_route(HostId from, HostId to);
    void require_route(HostId from, HostId to);
    bool path_is_on(HostId from, HostId to) const;
    bool ends_are_on(HostId from, HostId to) const { return host(from).is_on() && host(to).is_on(); }
    /// Tells the sink of a host, once the kernel has done what it is doing.
    template <class F>
    void tell_of(const s4u::Host& host, F&& call);
    void tell_of_start();
    void forget_routes();
    static std::vector<s4u::Link*> links_named(const std::string& name);
    std::vector<std::string> link_names() const;
    Flow& take_flow();
    void report_at_once(std::int64_t token, bool ok);
    void cancel_flows();
    template <class F>
    void guarded(F&& call);

    BuiltPlatform* platform_ = nullptr;
    double start_ = 0;
    ModelFactors factors_;
    std::vector<std::uint8_t> known_of_first_;     ///< routes between host 0 and the others: 1 there, 2 back
    std::vector<std::vector<KnownRoute>> routes_;  ///< [the higher of the two hosts], sorted by key
    std::map<s4u::Link*, Whole> whole_;            ///< links that were changed
    std::deque<Flow> flows_;
    std::vector<Flow*> free_, retired_;
    std::optional<KernelClock> clock_;
    bool told_ = false;  ///< how hosts are at the start
    NetworkSink* sink_ = nullptr;
    bool stopped_ = false;
    std::exception_ptr error_;
};

SimgridNetwork::SimgridNetwork(const NetworkRequest& request) {
    if (engine_in_use) throw PlatformError("SimGrid simulates one network at a time in a process, and one is open");
    factors_ = factors_of(request.scenario->cluster.network);
    connect_once();
    platform_ = &open_platform(request);
    start_ = s4u::Engine::get_clock();
    routes_.resize(platform_->hosts.size());
    known_of_first_.resize(platform_->hosts.size());
    clock_.emplace([this] { guarded([this] { sink_->on_alarm(); }); }, platform_->profiles);
    engine_in_use = true;
    open_network_value = this;
}

SimgridNetwork::~SimgridNetwork() {
    // Flows that a stop left behind hold activities of the engine.
    cancel_flows();
    flows_.clear();
    engine_in_use = false;
    open_network_value = nullptr;
}

void SimgridNetwork::connect_once() {
    static const bool once = [] {
        s4u::Activity::on_completion_cb(&SimgridNetwork::completed);
        s4u::Host::on_state_change_cb([](const s4u::Host& host) {
            something_went_off |= !host.is_on();
            if (open_network_value != nullptr)
                open_network_value->tell_of(
                    host, [on = host.is_on()](NetworkSink& sink, HostId id) { sink.on_host(id, on); });
        });
        s4u::Host::on_speed_change_cb([](const s4u::Host& host) {
            const double factor = host.get_available_speed();
            if (open_network_value != nullptr)
                open_network_value->tell_of(host,
                                            [factor](NetworkSink& sink, HostId id) { sink.on_speed(id, factor); });
        });
        s4u::Link::on_bandwidth_change_cb([](const s4u::Link&) {
            if (open_network_value != nullptr) open_network_value->forget_routes();
        });
        s4u::Link::on_state_change_cb([](const s4u::Link& link) { something_went_off |= !link.is_on(); });
        return true;
    }();
    static_cast<void>(once);
}

/// Runs what belongs to the driver: an exception must not unwind through SimGrid's kernel.
template <class F>
void SimgridNetwork::guarded(F&& call) {
    if (stopped_) return;
    try {
        call();
    } catch (...) {
        error_ = std::current_exception();
        stop();
    }
}

template <class F>
void SimgridNetwork::tell_of(const s4u::Host& host, F&& call) {
    if (sink_ == nullptr || stopped_) return;
    const auto& hosts = platform_->hosts;
    const auto found = std::find(hosts.begin(), hosts.end(), &host);
    if (found == hosts.end()) return;
    const auto id = static_cast<HostId>(found - hosts.begin());
    clock_->soon([this, id, call] {
        if (sink_ != nullptr) guarded([&] { call(*sink_, id); });
    });
}

void SimgridNetwork::forget_routes() {
    for (auto& routes : routes_) routes.clear();
    if (sink_ == nullptr || stopped_) return;
    clock_->soon([this] {
        if (sink_ != nullptr) guarded([this] { sink_->on_links(); });
    });
}

void SimgridNetwork::cancel(std::int64_t token) {
    for (Flow& flow : flows_) {
        if (!flow.active || flow.token != token) continue;
        flow.active = false;  // and never used again: the kernel still has to do with its activity
        flow.comm->cancel();
        return;
    }
}

std::vector<s4u::Link*> SimgridNetwork::links_named(const std::string& name) {
    const s4u::Engine& engine = *s4u::Engine::get_instance();
    std::vector<s4u::Link*> links;
    // What is built from values has links by the names of the hosts and switches that they join.
    for (const char* before : {"", "link-", "link-host-", "link-switch-"})
        for (const char* after : {"", "_UP", "_DOWN"})
            if (auto* link = engine.link_by_name_or_null(before + name + after)) links.push_back(link);
    return links;
}

// By the hosts and switches, where these will do.
std::vector<std::string> SimgridNetwork::link_names() const {
    std::set<std::string> names;
    std::set<const s4u::Link*> named;
    const auto name = [&](const std::string& text) {
        for (const s4u::Link* link : links_named(text)) named.insert(link), names.insert(text);
    };
    for (const s4u::Host* host : platform_->hosts) name(host->get_name());
    for (const s4u::Link* link : s4u::Engine::get_instance()->get_all_links()) {
        const std::string& text = link->get_name();
        if (text == "__loopback__" || named.contains(link)) continue;
        const std::size_t at = text.starts_with("link-switch-") ? 12 : 0;
        name(text.substr(at, text.rfind('_') - at));  // without _UP and _DOWN
        if (!named.contains(link)) names.insert(text);
    }
    return {names.begin(), names.end()};
}

void SimgridNetwork::degrade(const std::string& name, double bandwidth_factor, double latency_factor) {
    const auto links = links_named(name);
    if (links.empty()) throw no_such("link", name, link_names());
    for (s4u::Link* link : links) {
        const auto& whole = whole_.try_emplace(link, Whole{link->get_bandwidth(), link->get_latency()}).first->second;
        if (link->get_bandwidth() != whole.bandwidth * bandwidth_factor)
            link->set_bandwidth(whole.bandwidth * bandwidth_factor);
        if (link->get_latency() != whole.latency * latency_factor) link->set_latency(whole.latency * latency_factor);
    }
    for (auto& routes : routes_) routes.clear();
}

Time SimgridNetwork::next_change() {
    const double date = clock_->next_change();
    return date < 0 || date - start_ > 9e9 ? -1 : to_ns(std::max(0.0, date - start_));
}

void SimgridNetwork::at(Time when) {
    if (stopped_) return;
    platform_->used = true;
    const double clock = s4u::Engine::get_clock();
    const double wanted = start_ + static_cast<double>(when) / 1e9;
    const double date = wanted > clock ? wanted : clock;
    clock_->set(date);
}

SimgridNetwork::Flow& SimgridNetwork::take_flow() {
    if (free_.empty()) {
        flows_.push_back({this, 0, nullptr, false, 0, 0});
        return flows_.back();
    }
    Flow& flow = *free_.back();
    free_.pop_back();
    return flow;
}

void SimgridNetwork::transfer(HostId from, HostId to, double bytes, std::int64_t token) {
    if (stopped_) return;
    platform_->used = true;
    const bool direct = from == to && std::isinf(cached_route(from, to).bandwidth);
    if (from != to) require_route(from, to);
    if (something_went_off && !ends_are_on(from, to)) return;  // the sink is told of the host, and cancels
    if (something_went_off && !path_is_on(from, to)) return report_at_once(token, false);
    if (direct) return report_at_once(token, true);
    Flow& flow = take_flow();
    flow.token = token;
    flow.from = from;
    flow.to = to;
    flow.comm = s4u::Comm::sendto_init(&host(from), &host(to));
    flow.comm->set_data(&flow);
    flow.comm->set_payload_size(static_cast<std::uint64_t>(std::llround(bytes)));
    flow.active = true;
    flow.comm->start();
}

void SimgridNetwork::report_at_once(std::int64_t token, bool ok) {
    clock_->soon([this, token, ok] { guarded([&] { sink_->on_transfer(token, ok); }); });
}

void SimgridNetwork::completed(const s4u::Activity& activity) {
    auto* flow = activity.get_data<Flow>();
    // A cancelled activity completes twice.
    if (flow == nullptr || !flow->active || flow->comm.get() != &activity) return;
    SimgridNetwork& network = *flow->network;
    flow->active = false;
    for (Flow* past : network.retired_) {
        past->comm = nullptr;
        network.free_.push_back(past);
    }
    network.retired_.assign(1, flow);
    const bool ok = activity.get_state() == s4u::Activity::State::FINISHED;
    if (!ok && !network.ends_are_on(flow->from, flow->to)) return;  // as above
    network.guarded([&] { network.sink_->on_transfer(flow->token, ok); });
}

bool SimgridNetwork::path_is_on(HostId from, HostId to) const {
    const s4u::Host& source = host(from);
    const s4u::Host& target = host(to);
    const auto links_on = [](const s4u::Host& a, const s4u::Host& b) {
        std::vector<s4u::Link*> links;
        a.route_to(&b, links, nullptr);
        for (const s4u::Link* link : links)
            if (!link->is_on()) return false;
        return true;
    };
    return links_on(source, target) && (!factors_.crosstraffic || links_on(target, source));
}

// Before SimGrid aborts for want of one. Most transfers have the server's host at an end, whose routes take a byte
// each.
void SimgridNetwork::require_route(HostId from, HostId to) {
    const bool up = from < to;
    if ((up ? from : to) == 0) {
        auto& known = known_of_first_[static_cast<std::size_t>(up ? to : from)];
        if ((known & (up ? 1 : 2)) != 0) return;
        known = static_cast<std::uint8_t>(known | (up ? 1 : 2));
    }
    static_cast<void>(cached_route(from, to));
}

const Route& SimgridNetwork::cached_route(HostId from, HostId to) {
    auto& known = routes_[static_cast<std::size_t>(std::max(from, to))];
    const auto key = 2 * std::min(from, to) + (from < to ? 1 : 0);
    const auto found = std::lower_bound(known.begin(), known.end(), key,
                                        [](const KnownRoute& route, auto value) { return route.key < value; });
    if (found != known.end() && found->key == key) return found->route;
    const s4u::Host& source = host(from);
    const s4u::Host& target = host(to);
    // SimGrid's star leads a host to itself through its own link, up and down.
    const bool within = from == to && !platform_->loopbacks;
    const Route route = within ? Route{std::numeric_limits<double>::infinity(), 0} : find_route(source, target);
    if (factors_.crosstraffic) static_cast<void>(find_route(target, source));
    return known.insert(found, {key, route})->route;
}

std::pair<double, double> SimgridNetwork::route(HostId from, HostId to) {
    const Route& found = cached_route(from, to);
    return {found.bandwidth, found.latency};
}

double SimgridNetwork::common_bandwidth(const std::vector<HostId>& from, HostId to) {
    std::vector<s4u::Host*> sources;
    for (const HostId id : from) sources.push_back(&host(id));
    return find_common_bandwidth(sources, host(to));
}

Time SimgridNetwork::control_delay(HostId from, HostId to, double bytes) {
    const Route& found = cached_route(from, to);
    return to_ns(factors_.latency * found.latency + bytes / (factors_.bandwidth * found.bandwidth));
}

// What profiles say of time 0 is so before anybody listens.
void SimgridNetwork::tell_of_start() {
    for (HostId id = 0; id < static_cast<HostId>(platform_->hosts.size()); ++id) {
        const double factor = host(id).get_available_speed();
        guarded([&] {
            if (factor != 1) sink_->on_speed(id, factor);
            if (!host(id).is_on()) sink_->on_host(id, false);
        });
    }
}

void SimgridNetwork::run(NetworkSink& sink) {
    sink_ = &sink;
    platform_->used = true;
    if (platform_->profiles && !std::exchange(told_, true)) tell_of_start();
    clock_->run();
    sink_ = nullptr;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void SimgridNetwork::stop() {
    if (stopped_) return;
    stopped_ = true;
    clock_->clear();
    // Later, as this may be the callback of one of the activities.
    clock_->soon([this] { cancel_flows(); });
}

void SimgridNetwork::cancel_flows() {
    for (Flow& flow : flows_) {
        if (!std::exchange(flow.active, false)) continue;
        flow.comm->cancel();
    }
}

}  // namespace

/// The module's door; open_network finds it by name.
extern "C" __attribute__((visibility("default"))) Network* rubato_open_simgrid(const NetworkRequest* request) {
    return new SimgridNetwork(*request);
}

}  // namespace rubato::sim
