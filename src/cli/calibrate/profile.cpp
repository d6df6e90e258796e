#include "cli/calibrate/profile.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

/// Fewer values say little about the ends of a distribution.
constexpr std::size_t values_for_quantiles = 20;

Node list_of(const std::vector<double>& values) {
    Node list;
    list.kind = Node::Kind::array;
    for (const double value : values) list.items.push_back(Node::of(value));
    return list;
}

Node node_of(const ByteRange& range) {
    return list_of({range.smallest, range.largest});
}

Node node_of(const DeviceProfile& device) {
    Node node = Node::object();
    node.set("source", Node::of(device.source), {});
    node.set("dispatch_s", Node::of(device.dispatch_s), {});
    Node batches = Node::object();
    for (const auto& [batch, times] : device.batches) {
        Node entry = Node::object();
        entry.set("n", Node::of(times.n), {});
        entry.set("mean", Node::of(times.mean), {});
        if (!times.quantiles.empty()) entry.set("quantiles", list_of(times.quantiles), {});
        batches.set(std::to_string(batch), std::move(entry), {});
    }
    node.set("batches", std::move(batches), {});
    if (device.host_sharing.empty()) return node;
    Node& sharing = node.set("host_sharing", Node::object(), {});
    for (const auto& [workers, factor] : device.host_sharing)
        sharing.set(std::to_string(workers), Node::of(factor), {});
    return node;
}

Node node_of(const ServerProfile& server) {
    Node node = Node::object();
    node.set("source", Node::of(server.source), {});
    node.set("bytes", node_of(server.bytes), {});
    const auto put = [&](const char* key, const std::optional<OperationCost>& cost) {
        if (!cost) return;
        Node& entry = node.set(key, Node::object(), {});
        entry.set("n", Node::of(cost->n), {});
        entry.set("fixed_s", Node::of(cost->fixed_s), {});
        entry.set("per_byte_s", Node::of(cost->per_byte_s), {});
    };
    put("push", server.push);
    put("pull", server.pull);
    put("update", server.update);
    return node;
}

Node node_of(const NetworkProfile& network) {
    Node node = Node::object();
    node.set("source", Node::of(network.source), {});
    node.set("bytes", node_of(network.bytes), {});
    node.set("latency_s", Node::of(network.latency_s), {});
    node.set("bandwidth", Node::of(network.bandwidth), {});
    if (network.server_bandwidth) node.set("server_bandwidth", Node::of(*network.server_bandwidth), {});
    node.set("largest_error", Node::of(network.largest_error), {});
    Node& messages = node.set("messages", list_of({}), {});
    for (const MessageTime& message : network.messages) {
        Node entry = Node::object();
        entry.set("bytes", Node::of(message.bytes), {});
        entry.set("seconds", Node::of(message.seconds), {});
        entry.set("n", Node::of(message.n), {});
        messages.items.push_back(std::move(entry));
    }
    return node;
}

}  // namespace

const std::vector<double>& profile_levels() {
    static const std::vector<double> levels = [] {
        std::vector<double> all{0, 0.001, 0.002, 0.005, 0.01};
        for (int i = 1; i < 50; ++i) all.push_back(i / 50.0);
        all.insert(all.end(), {0.99, 0.995, 0.998, 0.999, 1});
        return all;
    }();
    return levels;
}

ComputeTimes compute_times(std::vector<double>& seconds) {
    std::sort(seconds.begin(), seconds.end());
    ComputeTimes times;
    times.n = static_cast<std::int64_t>(seconds.size());
    double sum = 0;
    for (const double value : seconds) sum += value;
    times.mean = sum / static_cast<double>(seconds.size());
    if (seconds.size() < values_for_quantiles) return times;
    for (const double level : profile_levels()) {
        const double place = level * static_cast<double>(seconds.size() - 1);
        const auto below = std::min(static_cast<std::size_t>(place), seconds.size() - 2);
        const double part = place - static_cast<double>(below);
        // Rounding must not leave the interval: quantiles ascend.
        times.quantiles.push_back(
            std::min(seconds[below] + (seconds[below + 1] - seconds[below]) * part, seconds[below + 1]));
    }
    return times;
}

Node to_node(const Profile& profile) {
    Node root = Node::object();
    root.set("profile_version", Node::of(std::int64_t{1}), {});
    root.set("date", Node::of(profile.date), {});
    root.set("host", Node::of(profile.host), {});
    root.set("cores", Node::of(static_cast<std::int64_t>(profile.cores)), {});
    if (!profile.compute.empty()) {
        root.set("levels", list_of(profile.levels), {});
        Node& compute = root.set("compute", Node::object(), {});
        for (const auto& [name, device] : profile.compute) compute.set(name, node_of(device), {});
    }
    if (profile.common) {
        Node& common = root.set("common", Node::object(), {});
        common.set("share", Node::of(profile.common->share), {});
        common.set("time_s", Node::of(profile.common->time_s), {});
    }
    if (profile.server) root.set("server", node_of(*profile.server), {});
    if (profile.network) root.set("network", node_of(*profile.network), {});
    Node& notes = root.set("notes", list_of({}), {});
    for (const auto& text : profile.notes) notes.items.push_back(Node::of(text));
    return root;
}

}  // namespace rubato::cli
