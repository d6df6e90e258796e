#include "sim/placement.hpp"

#include "core/tree.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>
#include <unordered_map>

namespace rubato::sim {

namespace {

int slots_needed(const WorkersSpec& workers) {
    const auto slots = rubato::worker_hosts(workers);
    return slots.empty() ? 0 : slots.back() + 1;
}

using HostNames = std::unordered_map<std::string, HostId>;

HostId find_host(const HostNames& names, const std::vector<HostInfo>& hosts, const std::string& name, const char* key) {
    if (const auto found = names.find(name); found != names.end()) return found->second;
    std::string some;
    for (std::size_t i = 0; i < hosts.size() && i < 4; ++i) some += (i ? ", " : "") + hosts[i].name;
    throw PlatformError(std::string(key) + ": the platform has no host \"" + name + "\"; it has " +
                        std::to_string(hosts.size()) + (hosts.size() == 1 ? " host: " : " hosts: ") + some +
                        (hosts.size() > 4 ? ", ..." : ""));
}

std::vector<HostId> hosts_for_workers(const ClusterSpec& cluster, const HostNames& names,
                                      const std::vector<HostInfo>& hosts, const std::vector<HostId>& servers) {
    std::vector<HostId> chosen;
    std::vector<bool> used(hosts.size(), false);
    for (const std::string& name : cluster.hosts) {
        const HostId host = find_host(names, hosts, name, "cluster.hosts");
        if (used[static_cast<std::size_t>(host)])
            throw PlatformError("cluster.hosts: host \"" + name +
                                "\" is listed twice; workers.groups' per_host puts several workers on a host");
        used[static_cast<std::size_t>(host)] = true;
        chosen.push_back(host);
    }
    if (!cluster.hosts.empty()) return chosen;
    for (HostId host = 0; host < static_cast<HostId>(hosts.size()); ++host)
        if (std::find(servers.begin(), servers.end(), host) == servers.end()) chosen.push_back(host);
    if (chosen.empty()) chosen.push_back(servers.front());
    return chosen;
}

const DeviceSpec* find_device(const ClusterSpec& cluster, const std::string& name) {
    if (const auto found = cluster.devices.find(name); found != cluster.devices.end()) return &found->second;
    // Workers without a device are charged for their FLOPs on the host's speed.
    static const DeviceSpec by_flops;
    if (name == "default") return &by_flops;
    std::string known;
    for (const auto& [device, spec] : cluster.devices) known += (known.empty() ? "" : ", ") + device;
    throw PlatformError("cluster.devices: workers use device \"" + name + "\", which is not defined there" +
                        (known.empty() ? "" : "; it defines " + known));
}

void choose_devices(const Scenario& scenario, Placement& placement) {
    for (const WorkerGroup& group : scenario.workers.groups) {
        const DeviceSpec* device = find_device(scenario.cluster, group.device);
        placement.device_of_role.insert(placement.device_of_role.end(), static_cast<std::size_t>(group.count), device);
        placement.device_name_of_role.insert(placement.device_name_of_role.end(), static_cast<std::size_t>(group.count),
                                             group.device);
        placement.group_of_role.insert(placement.group_of_role.end(), static_cast<std::size_t>(group.count), &group);
    }
}

std::string counted(std::int64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

/// Whether the scenario leaves open how many workers a host bears.
bool leaves_sharing_open(const WorkersSpec& workers) {
    const auto open = [](const WorkerGroup& group) { return group.per_host == 0; };
    return workers.hosts == 0 && std::all_of(workers.groups.begin(), workers.groups.end(), open);
}

/// Hosts of servers that have their own: the server's, and, for shards, the next ones that are nobody's.
std::vector<HostId> hosts_for_servers(const Scenario& scenario, const HostNames& names,
                                      const std::vector<HostInfo>& hosts) {
    const ClusterSpec& cluster = scenario.cluster;
    const int needed = servers_apart(scenario);
    if (needed == 0) return {};
    std::vector<HostId> chosen{
        cluster.server_host.empty() ? 0 : find_host(names, hosts, cluster.server_host, "cluster.server_host")};
    for (HostId host = 0; host < static_cast<HostId>(hosts.size()) && static_cast<int>(chosen.size()) < needed;
         ++host) {
        const auto& its = hosts[static_cast<std::size_t>(host)].name;
        if (host != chosen.front() && std::find(cluster.hosts.begin(), cluster.hosts.end(), its) == cluster.hosts.end())
            chosen.push_back(host);
    }
    if (static_cast<int>(chosen.size()) < needed)
        throw PlatformError("topology.servers_on: " + counted(needed, "shard") +
                            " need as many hosts without a worker, and the platform has only " +
                            std::to_string(chosen.size()) +
                            "; topology.servers_on = workers puts them beside the workers");
    return chosen;
}

/// The host of each worker. With more workers than hosts, and nothing said about it, they share the hosts evenly.
std::vector<HostId> seats(const Scenario& scenario, const std::vector<HostId>& available, HostId server,
                          std::vector<std::string>& warnings) {
    auto slots = rubato::worker_hosts(scenario.workers);
    const auto lambda = static_cast<std::int64_t>(slots.size());
    const auto there = static_cast<std::int64_t>(available.size());
    const int needed = slots_needed(scenario.workers);
    if (needed > there) {
        const bool own = there == 1 && available.front() == server;
        if (!leaves_sharing_open(scenario.workers))
            throw PlatformError("workers.count: " + counted(lambda, "worker") + " need " + counted(needed, "host") +
                                " besides the server's, and the platform offers " + std::to_string(own ? 0 : there) +
                                "; workers.hosts or per_host puts several workers on a host");
        for (std::int64_t w = 0; w < lambda; ++w)
            slots[static_cast<std::size_t>(w)] = static_cast<int>(w * there / lambda);
        warnings.push_back(counted(lambda, "worker") + " share " +
                           (own ? "the server's host, the platform's only one" : counted(there, "host")) + ", up to " +
                           std::to_string((lambda + there - 1) / there) +
                           " a host; workers.hosts = " + std::to_string(there) + " says so on purpose");
    }
    std::vector<HostId> hosts;
    for (const int slot : slots) hosts.push_back(available[static_cast<std::size_t>(slot)]);
    return hosts;
}

/// A relay beside its workers, or on a host where nobody else is.
void seat_relays(const Scenario& scenario, const std::vector<HostInfo>& hosts, Placement& placement) {
    const Tree tree = make_tree(scenario);
    std::vector<bool> used(hosts.size(), false);
    for (const HostId host : placement.host_of_role) used[static_cast<std::size_t>(host)] = true;
    for (const std::string& name : scenario.cluster.hosts)  // those are for workers
        for (std::size_t host = 0; host < hosts.size(); ++host) used[host] = used[host] || hosts[host].name == name;
    std::size_t next = 0;
    for (const auto& relay : tree.relays()) {
        placement.device_of_role.push_back(nullptr);
        placement.device_name_of_role.emplace_back();
        placement.group_of_role.push_back(nullptr);
        if (scenario.tree.leaves_by_host) {
            placement.host_of_role.push_back(placement.host_of_role[static_cast<std::size_t>(relay.first) + 1]);
            continue;
        }
        while (next < used.size() && used[next]) ++next;
        if (next == used.size())
            throw PlatformError("topology.leaves: the tree's " +
                                counted(static_cast<std::int64_t>(tree.relays().size()), "relay") +
                                " need as many hosts without the server or a worker, and the platform has only " +
                                std::to_string(relay.role - scenario.lambda() - 1) +
                                "; topology.leaves = hosts puts them beside the workers");
        placement.host_of_role.push_back(static_cast<HostId>(next++));
    }
}

/// The shards, of which the first is role 0, whose place is there already.
void seat_shards(const Scenario& scenario, const std::vector<HostId>& apart, Placement& placement) {
    if (scenario.topology != "sharded") return;
    std::vector<HostId> chosen = apart;
    for (std::size_t role = 1; apart.empty() && role < placement.host_of_role.size(); ++role)
        if (std::find(chosen.begin(), chosen.end(), placement.host_of_role[role]) == chosen.end())
            chosen.push_back(placement.host_of_role[role]);
    const auto shards = static_cast<std::size_t>(scenario.shards.count);
    if (chosen.size() < shards)
        throw PlatformError("topology.servers_on: " + counted(scenario.shards.count, "shard") +
                            " beside the workers need as many hosts of workers, and there " +
                            (chosen.size() == 1 ? "is " : "are ") + std::to_string(chosen.size()) +
                            "; topology.servers_on = own gives each a host of its own");
    placement.host_of_role.front() = chosen.front();
    for (std::size_t shard = 1; shard < shards; ++shard) {
        placement.host_of_role.push_back(chosen[shard]);
        placement.device_of_role.push_back(nullptr);
        placement.device_name_of_role.emplace_back();
        placement.group_of_role.push_back(nullptr);
    }
}

/// Workers that compute by FLOPs and have no core for themselves; one line, for the fullest host.
void warn_of_crowds(const std::vector<HostInfo>& hosts, Placement& placement) {
    double worst = 1;
    std::size_t role_of_worst = 0;
    for (std::size_t role = 1; role <= static_cast<std::size_t>(placement.workers->count()); ++role) {
        if (placement.device_of_role[role]->kind != DeviceSpec::Kind::flops) continue;
        const ComputeSite& site = placement.site_of_role[role];
        const double crowd = static_cast<double>(site.workers) / site.cores;
        if (crowd <= worst) continue;
        worst = crowd;
        role_of_worst = role;
    }
    if (role_of_worst == 0) return;
    const ComputeSite& site = placement.site_of_role[role_of_worst];
    char factor[32];
    std::snprintf(factor, sizeof factor, "%.4g", worst);
    placement.warnings.push_back(counted(site.workers, "worker") + " on host \"" +
                                 hosts[static_cast<std::size_t>(placement.host_of_role[role_of_worst])].name +
                                 "\" share its " + counted(site.cores, "core") + ": a gradient takes " + factor +
                                 " times as long as on a core of its own");
}

/// "1 worker a host", "1 to 4 workers a host".
std::string measured_workers(const std::vector<std::pair<double, double>>& sharing) {
    const auto from = static_cast<std::int64_t>(sharing.front().first);
    const auto to = static_cast<std::int64_t>(sharing.back().first);
    return from == to ? counted(from, "worker") : std::to_string(from) + " to " + counted(to, "worker");
}

/// Figures beyond what was measured.
void warn_of_sizes(const Scenario& scenario, Placement& placement) {
    const ClusterSpec& cluster = scenario.cluster;
    const auto look = [&](const char* key, const std::optional<MeasuredBytes>& measured) {
        if (!measured) return;
        const auto push = static_cast<double>(scenario.cost.push_bytes);
        const auto pull = static_cast<double>(scenario.cost.pull_bytes);
        for (const double bytes : {push, pull}) {
            if (bytes >= measured->smallest && bytes <= measured->largest) continue;
            char text[200];
            std::snprintf(text, sizeof text,
                          "%s: messages of %.0f bytes lie outside the %.0f to %.0f bytes that were "
                          "measured; extrapolated",
                          key, bytes, measured->smallest, measured->largest);
            placement.warnings.emplace_back(text);
            break;
        }
    };
    if (cluster.platform.empty()) look("cluster.network.star", cluster.network.star.measured_bytes);
    look("cluster.server", cluster.server.measured_bytes);
}

/// Missing figures are found before the run, not in the middle of it.
void check_costs(const Scenario& scenario, Placement& placement) {
    std::set<std::tuple<const DeviceSpec*, int, int>> seen;
    for (std::size_t role = 1; role <= static_cast<std::size_t>(scenario.lambda()); ++role) {
        const std::string& name = placement.device_name_of_role[role];
        const int workers = placement.site_of_role[role].workers;
        if (role > 1 && placement.group_of_role[role] == placement.group_of_role[role - 1] &&
            workers == placement.site_of_role[role - 1].workers)
            continue;
        const int batch = placement.group_of_role[role]->part(scenario.workers.batch_size);
        if (!seen.emplace(placement.device_of_role[role], workers, batch).second) continue;
        const auto seconds =
            gradient_seconds(*placement.device_of_role[role], scenario.cost, placement.site_of_role[role], batch);
        const auto warn = [&](const std::string& what) {
            const std::string line = "cluster.devices." + name + ": " + what + "; extrapolated";
            if (std::find(placement.warnings.begin(), placement.warnings.end(), line) == placement.warnings.end())
                placement.warnings.push_back(line);
        };
        if (seconds.extrapolated) warn("batch size " + std::to_string(batch) + " lies outside the table of seconds");
        if (seconds.sharing_extrapolated)
            warn(counted(workers, "worker") + " a host lie outside the table of host_sharing, " +
                 measured_workers(placement.device_of_role[role]->sharing));
    }
}

}  // namespace

double Placement::device_seconds(RoleId role, int batch) const {
    const auto r = static_cast<std::size_t>(role);
    batch = group_of_role[r]->part(batch);
    const double seconds = workers->seconds.empty()
                               ? gradient_seconds(*device_of_role[r], *cost, site_of_role[r], batch).value
                               : workers->seconds[r - 1];
    return workers->slow.empty() ? seconds : seconds * workers->slow[r - 1];
}

int star_hosts(const Scenario& scenario) {
    const int relays = scenario.tree.leaves_by_host ? 0 : static_cast<int>(make_tree(scenario).relays().size());
    return servers_apart(scenario) +
           std::max(slots_needed(scenario.workers), static_cast<int>(scenario.cluster.hosts.size())) + relays;
}

int servers_apart(const Scenario& scenario) {
    if (scenario.topology != "sharded") return 1;
    return scenario.shards.beside_workers ? 0 : scenario.shards.count;
}

Placement place(const Scenario& scenario, const std::vector<HostInfo>& hosts) {
    const ClusterSpec& cluster = scenario.cluster;
    if (hosts.empty()) throw PlatformError("the platform has no host");
    HostNames names;
    for (std::size_t i = 0; i < hosts.size(); ++i) names.emplace(hosts[i].name, static_cast<HostId>(i));
    const auto servers = hosts_for_servers(scenario, names, hosts);
    const auto available = hosts_for_workers(cluster, names, hosts, servers);
    const HostId server = servers.empty() ? -1 : servers.front();
    Placement placement;
    placement.cost = &scenario.cost;
    placement.workers = &scenario.workers;
    placement.host_of_role.push_back(server);
    placement.device_of_role.push_back(nullptr);
    placement.device_name_of_role.emplace_back();
    placement.group_of_role.push_back(nullptr);
    for (const HostId host : seats(scenario, available, server, placement.warnings))
        placement.host_of_role.push_back(host);
    choose_devices(scenario, placement);
    seat_shards(scenario, servers, placement);
    if (scenario.has_relays()) seat_relays(scenario, hosts, placement);
    std::vector<int> workers_on(hosts.size(), 0);
    for (std::size_t role = 1; role <= static_cast<std::size_t>(scenario.lambda()); ++role)
        ++workers_on[static_cast<std::size_t>(placement.host_of_role[role])];
    for (const HostId host : placement.host_of_role) {
        const auto h = static_cast<std::size_t>(host);
        placement.workers_on_host_of_role.push_back(workers_on[h]);
        placement.site_of_role.push_back({hosts[h].speed, hosts[h].cores, workers_on[h]});
    }
    if (scenario.workers.seconds.empty()) {
        check_costs(scenario, placement);
        warn_of_crowds(hosts, placement);
    }
    warn_of_sizes(scenario, placement);
    return placement;
}

}  // namespace rubato::sim
