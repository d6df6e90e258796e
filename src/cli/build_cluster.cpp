// The simulated machine of a checked tree.
#include "cli/build_scenario.hpp"
#include "cli/node_value.hpp"

#include <algorithm>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

DeviceSpec build_device(const Node& node) {
    DeviceSpec spec;
    const auto read = [&](const char* key, double& value) {
        const Node* found = node.find(key);
        if (found) value = found->number;
        return found != nullptr;
    };
    if (const Node* seconds = node.find("seconds")) {
        spec.kind = DeviceSpec::Kind::table;
        for (const auto& [batch, where, value] : seconds->members) {
            if (batch != "comment") spec.table.emplace_back(std::stod(batch), quantity(value, Quantity::duration));
        }
        std::sort(spec.table.begin(), spec.table.end());
    }
    if (read("c", spec.c)) spec.kind = DeviceSpec::Kind::power;
    read("p", spec.p);
    read("b0", spec.b0);
    const bool a = read("a", spec.a);
    const bool b = read("b", spec.b);
    if (a || b) spec.kind = DeviceSpec::Kind::affine;
    read("host_sharing", spec.host_sharing);
    return spec;
}

NetworkSpec build_network(const Node& network) {
    NetworkSpec spec;
    spec.model = network.at("model").text;
    if (const Node* simgrid = network.find("simgrid")) spec.simgrid = simgrid->text;
    if (const Node* gamma = network.find("tcp_gamma")) spec.tcp_gamma = gamma->boolean;
    const Node& cap = network.at("concurrent_transfers");
    spec.concurrent_transfers = cap.is(Kind::null) ? 0 : to_int(cap);
    if (const Node* star = network.find("star")) {
        spec.star.bandwidth = quantity(star->at("bandwidth"), Quantity::bandwidth);
        spec.star.latency = quantity(star->at("latency"), Quantity::duration);
        spec.star.host_speed = quantity(star->at("host_speed"), Quantity::speed);
        if (const Node* server = star->find("server_bandwidth")) {
            spec.star.server_bandwidth = quantity(*server, Quantity::bandwidth);
        }
    }
    return spec;
}

}  // namespace

ClusterSpec build_cluster(const Node& cluster) {
    ClusterSpec spec;
    if (const Node* platform = cluster.find("platform")) spec.platform = platform->text;
    if (const Node* hosts = cluster.find("hosts")) {
        for (const auto& host : hosts->items) spec.hosts.push_back(host.text);
    }
    if (const Node* host = cluster.find("server_host")) spec.server_host = host->text;
    spec.network = build_network(cluster.at("network"));
    spec.devices["default"];
    for (const auto& [key, where, device] : cluster.at("devices").members) {
        if (key != "comment") spec.devices[key] = build_device(device);
    }
    spec.noise.lognormal_cv = cluster.at("noise").at("lognormal_cv").number;
    const Node& server = cluster.at("server");
    spec.server.push_s = quantity(server.at("push_s"), Quantity::duration);
    spec.server.pull_s = quantity(server.at("pull_s"), Quantity::duration);
    spec.server.update_s = quantity(server.at("update_s"), Quantity::duration);
    return spec;
}

}  // namespace rubato::cli
