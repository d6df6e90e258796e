// The simulated machine of a checked tree.
#include "cli/build_scenario.hpp"
#include "cli/node_value.hpp"
#include "cli/spells.hpp"

#include <algorithm>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

/// Times become factors on their mean.
TimeShape build_shape(const std::string& batch, const Node& quantiles, const std::vector<double>& levels) {
    TimeShape shape{std::stod(batch), {}};
    for (const Node& item : quantiles.items) shape.factors.push_back(quantity(item, Quantity::duration));
    const double mean = mean_of_quantiles(levels, shape.factors);
    for (double& factor : shape.factors) factor /= mean;
    return shape;
}

void build_scatter(const Node& node, DeviceSpec& spec) {
    const Node* quantiles = node.find("quantiles");
    if (quantiles == nullptr) return;
    for (const Node& level : node.at("levels").items) spec.levels.push_back(level.number);
    for (const auto& [batch, where, value] : quantiles->members) {
        if (batch != "comment") spec.shapes.push_back(build_shape(batch, value, spec.levels));
    }
    std::sort(spec.shapes.begin(), spec.shapes.end(), [](const auto& a, const auto& b) { return a.batch < b.batch; });
}

void build_sharing(const Node& sharing, DeviceSpec& spec) {
    if (sharing.is_number()) spec.host_sharing = sharing.number;
    for (const auto& [workers, where, factor] : sharing.members) {
        if (workers != "comment") spec.sharing.emplace_back(std::stod(workers), factor.number);
    }
    std::sort(spec.sharing.begin(), spec.sharing.end());
}

std::optional<MeasuredBytes> build_measured(const Node& object) {
    const Node* range = object.find("measured_bytes");
    if (range == nullptr) return std::nullopt;
    return MeasuredBytes{quantity(range->items[0], Quantity::size), quantity(range->items[1], Quantity::size)};
}

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
    build_sharing(node.at("host_sharing"), spec);
    build_scatter(node, spec);
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
        spec.star.measured_bytes = build_measured(*star);
    }
    return spec;
}

NoiseSpec build_noise(const Node& noise) {
    using Shape = NoiseSpec::Kind;
    NoiseSpec spec;
    constexpr std::pair<const char*, Shape> kinds[] = {
        {"lognormal_cv", Shape::lognormal}, {"normal_cv", Shape::normal}, {"exponential_cv", Shape::exponential}};
    for (const auto& [key, kind] : kinds) {
        const Node* cv = noise.find(key);
        if (!cv || cv->number == 0) continue;
        spec.cv = cv->number;
        spec.kind = kind;
    }
    if (const Node* common = noise.find("common"))
        spec.common = {common->at("share").number, quantity(common->at("time_s"), Quantity::duration)};
    return spec;
}

StragglerSpec build_straggler(const Node& node) {
    StragglerSpec spec;
    if (const Node* workers = node.find("workers")) {
        for (const Node& item : workers->items) spec.workers.push_back(to_int(item));
        std::sort(spec.workers.begin(), spec.workers.end());
    }
    spec.slowdown = node.at("slowdown").number;
    spec.from_s = seconds_of(node, "from_s");
    spec.until_s = seconds_of(node, "until_s");
    spec.every_s = seconds_of(node, "every_s");
    spec.for_s = seconds_of(node, "for_s");
    if (const Node* probability = node.find("probability")) spec.probability = probability->number;
    return spec;
}

}  // namespace

double mean_of_quantiles(const std::vector<double>& levels, const std::vector<double>& values) {
    double mean = 0;
    for (std::size_t i = 1; i < levels.size(); ++i)
        mean += (levels[i] - levels[i - 1]) * (values[i] + values[i - 1]) / 2;
    return mean;
}

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
    spec.noise = build_noise(cluster.at("noise"));
    for (const Node& item : cluster.at("stragglers").items) spec.stragglers.push_back(build_straggler(item));
    const Node& server = cluster.at("server");
    const auto cost = [&](const std::string& key, double& seconds, double& per_byte) {
        seconds = quantity(server.at(key + "_s"), Quantity::duration);
        per_byte = server.at(key + "_s_per_byte").number;
    };
    cost("push", spec.server.push_s, spec.server.push_s_per_byte);
    cost("pull", spec.server.pull_s, spec.server.pull_s_per_byte);
    cost("update", spec.server.update_s, spec.server.update_s_per_byte);
    spec.server.measured_bytes = build_measured(server);
    const Node& exchange = cluster.at("exchange");
    spec.exchange = {quantity(exchange.at("send_s"), Quantity::duration), exchange.at("send_s_per_byte").number,
                     quantity(exchange.at("copy_s"), Quantity::duration), exchange.at("copy_s_per_byte").number};
    return spec;
}

}  // namespace rubato::cli
