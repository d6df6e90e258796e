// Which host each role gets, and what a gradient costs there.
#pragma once

#include "core/scenario.hpp"
#include "sim/cost.hpp"
#include "sim/network.hpp"

#include <string>
#include <vector>

namespace rubato::sim {

/// Role 0 is the server, role 1 + w is worker w; relays of a tree come after them. Refers to the scenario, which must
/// outlive it.
struct Placement {
    std::vector<HostId> host_of_role;
    std::vector<int> workers_on_host_of_role;
    std::vector<const DeviceSpec*> device_of_role;  ///< null for servers
    std::vector<std::string> device_name_of_role;   ///< empty for servers
    std::vector<const WorkerGroup*> group_of_role;  ///< null for servers
    std::vector<ComputeSite> site_of_role;
    std::vector<std::string> warnings;  ///< hosts that are shared; batch sizes outside a device's table
    const CostSpec* cost = nullptr;
    const WorkersSpec* workers = nullptr;  ///< whose own factors or seconds count

    /// Seconds of a gradient of `batch` samples, without noise. Throws PlatformError where a figure is missing.
    double seconds(RoleId role, int batch) const { return device_seconds(role, batch) + sum_seconds(role); }
    /// Of the device that has the largest part of the batch; what scatters.
    double device_seconds(RoleId role, int batch) const;
    /// To sum up what the devices of the worker computed.
    double sum_seconds(RoleId role) const { return group_of_role[static_cast<std::size_t>(role)]->sum_s; }
};

/// Hosts that the inline star needs: the server's, one for each host of workers, and one for each relay that has its
/// own.
int star_hosts(const Scenario& scenario);

/// The server on cluster.server_host, or the first host. Workers on cluster.hosts, or on all hosts but the server's, in
/// order (on the server's where the platform has no other): with workers.hosts = H, worker w on host w * H / lambda;
/// otherwise group after group, per_host workers a host (0: one; where there are too few hosts for that, they are
/// shared evenly, as by workers.hosts, and a warning says so). More workers that compute by FLOPs than cores are warned
/// about. Relays on the host of their first worker where leaves are by host, otherwise each on a host of its own, after
/// those of the workers. Throws PlatformError for unknown names, for fewer hosts than workers.hosts or per_host ask for
/// (says how many are needed), and where a device or its figure is missing.
Placement place(const Scenario& scenario, const std::vector<HostInfo>& hosts);

}  // namespace rubato::sim
