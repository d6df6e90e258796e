#include "sim/simgrid/simgrid_platform.hpp"

#include "sim/platform/platform_json.hpp"
#include "sim/simgrid/simgrid_build.hpp"
#include "sim/simgrid/simgrid_kernel.hpp"
#include "sim/simgrid/simgrid_trial.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

namespace rubato::sim {

namespace s4u = simgrid::s4u;

namespace {

/// A link that can never be the narrowest of any flow changes no share (max-min), so it need not be in the solver,
/// whose work it doubles. Where all flows lead through the server's link, a worker's at least as wide one is such;
/// where the flows at once all fit into the server's, that one is. Shares go by latency alone in CM02, not in LV08.
StarLinks needed_links(const NetworkRequest& request) {
    const NetworkSpec& network = request.scenario->cluster.network;
    // One that is degraded may become the narrowest.
    for (const FaultSpec& fault : request.scenario->faults)
        if (!fault.links.empty()) return {};
    if (!request.through_server || network.simgrid != "CM02") return {};
    const double worker = network.star.bandwidth;
    const double server = network.star.server_bandwidth == 0 ? worker : network.star.server_bandwidth;
    if (worker >= server) return {true, false};
    const int cap = network.concurrent_transfers;
    return {cap == 0 || cap * worker > server, true};
}

/// What makes two requests ask for the same platform.
struct PlatformKey {
    std::string platform;
    std::string simgrid;
    bool tcp_gamma = false;
    StarSpec star;
    int star_hosts = 0, star_servers = 1;
    StarLinks links;
    bool operator==(const PlatformKey&) const = default;
};

PlatformKey key_of(const NetworkRequest& request) {
    const ClusterSpec& cluster = request.scenario->cluster;
    PlatformKey key;
    key.platform = cluster.platform;
    key.simgrid = cluster.network.simgrid;
    key.tcp_gamma = cluster.network.tcp_gamma;
    if (!cluster.platform.empty()) return key;
    key.star = cluster.network.star;
    key.star_hosts = request.star_hosts;
    key.star_servers = request.star_servers;
    key.links = needed_links(request);
    return key;
}

}  // namespace

ModelFactors factors_of(const NetworkSpec& spec) {
    if (spec.simgrid == "CM02") return {};
    // What SimGrid's own LV08 sets (Velho and Legrand 2009).
    if (spec.simgrid == "LV08") return {13.01, 0.97, true, 20537};
    throw PlatformError("cluster.network.simgrid is \"" + spec.simgrid + "\"; expected \"CM02\" or \"LV08\"");
}

void configure(const NetworkSpec& spec) {
    const ModelFactors factors = factors_of(spec);
    // SimGrid refuses to change the model within a process. LV08 is CM02 with other factors, so these carry the choice.
    static const bool once = [] {
        s4u::Engine::set_config("network/model:CM02");
        // Selective updating, SimGrid's default, leaves links out where several flows with one first link begin to
        // share at one date, so that they get more than their links carry; and a flow that is still in its latency when
        // a profile changes a latency never ends, as only flows whose weight changes are looked at again. With few
        // flows at once, looking at all of them costs no more.
        s4u::Engine::set_config("network/optim:Full");
        return true;
    }();
    static_cast<void>(once);
    static const double default_window = 4194304;  // bytes, SimGrid's default
    s4u::Engine::set_config("network/latency-factor", factors.latency);
    s4u::Engine::set_config("network/bandwidth-factor", factors.bandwidth);
    s4u::Engine::set_config("network/weight-S", factors.weight_s);
    s4u::Engine::set_config("network/crosstraffic", factors.crosstraffic);
    s4u::Engine::set_config("network/TCP-gamma", spec.tcp_gamma ? default_window : 0.0);
}

std::vector<s4u::Host*> load_xml(const s4u::Engine& engine, const std::string& path) {
    // Engine::get_all_hosts() is sorted by name; the order of the file is that of creation.
    static std::vector<s4u::Host*>* created = nullptr;
    static const bool once = [] {
        s4u::Host::on_creation_cb([](s4u::Host& host) {
            if (created != nullptr) created->push_back(&host);
        });
        return true;
    }();
    static_cast<void>(once);
    std::vector<s4u::Host*> hosts;
    created = &hosts;
    engine.load_platform(path);
    created = nullptr;
    engine.seal_platform();
    return hosts;
}

BuiltPlatform& open_platform(const NetworkRequest& request) {
    static BuiltPlatform built;
    static std::optional<PlatformKey> key;
    static bool profiles = false;
    if (key && *key == key_of(request) && !built.used) return built;
    if (profiles)
        throw PlatformError(
            "a platform with profiles was simulated in this process, and SimGrid keeps their events; start a new "
            "process for the next run");
    const ClusterSpec& cluster = request.scenario->cluster;
    JsonPlatform plan;
    Trial trial;
    if (cluster.platform.empty())
        plan.hosts = inline_star(cluster.network.star, request.star_hosts, request.star_servers).hosts;
    else if (cluster.platform.ends_with(".json"))
        plan = read_platform_json(cluster.platform);
    else
        trial = try_platform(cluster);
    key.reset();
    s4u::Engine& engine = fresh_engine();
    configure(cluster.network);
    profiles = trial.profiles;
    built = {{}, {}, std::move(trial.warnings), trial.profiles, plan.hosts.empty(), false};
    key = key_of(request);
    if (plan.hosts.empty()) {
        built.hosts = load_xml(engine, cluster.platform);
        for (const s4u::Host* host : built.hosts)
            built.infos.push_back({host->get_name(), host->get_speed(), host->get_core_count()});
    } else {
        built.hosts = build(plan, key->links);
        for (const StarHost& host : plan.hosts) built.infos.push_back({host.name, host.speed, host.cores});
    }
    return built;
}

Route find_route(const s4u::Host& from, const s4u::Host& to) {
    std::vector<s4u::Link*> links;
    double latency = 0;
    try {
        from.route_to(&to, links, &latency);
    } catch (const std::exception&) {
        links.clear();
        latency = 0;
    }
    if (links.empty() && !(latency > 0) && &from != &to)
        throw PlatformError("no route from host \"" + from.get_name() + "\" to host \"" + to.get_name() + "\"");
    double bandwidth = std::numeric_limits<double>::infinity();
    for (const s4u::Link* link : links) bandwidth = std::min(bandwidth, link->get_bandwidth());
    return {bandwidth, latency};
}

double find_common_bandwidth(const std::vector<s4u::Host*>& from, const s4u::Host& to) {
    std::vector<s4u::Link*> common;
    const s4u::Host* last = nullptr;
    for (const s4u::Host* host : from) {
        if (host == last) continue;
        std::vector<s4u::Link*> links;
        if (host != &to) {
            static_cast<void>(find_route(*host, to));
            host->route_to(&to, links, nullptr);
        }
        if (last == nullptr)
            common = links;
        else
            std::erase_if(common, [&](const s4u::Link* link) { return std::ranges::find(links, link) == links.end(); });
        last = host;
    }
    double bandwidth = std::numeric_limits<double>::infinity();
    for (const s4u::Link* link : common)
        if (link->get_sharing_policy() != s4u::Link::SharingPolicy::FATPIPE)
            bandwidth = std::min(bandwidth, link->get_bandwidth());
    return bandwidth;
}

}  // namespace rubato::sim
