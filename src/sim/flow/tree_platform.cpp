#include "sim/flow/tree_platform.hpp"

#include "sim/platform/no_such.hpp"
#include "sim/platform/platform_json.hpp"

#include <algorithm>

namespace rubato::sim {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
    throw PlatformError("cluster.network.model: \"flow\" takes stars and trees, and " + path + " is " + what +
                        "; \"simgrid\" takes it");
}

}  // namespace

TreePlatform::TreePlatform(const NetworkRequest& request) {
    const ClusterSpec& cluster = request.scenario->cluster;
    if (cluster.platform.empty())
        build_star(inline_star(cluster.network.star, request.star_hosts, request.star_servers).hosts);
    else
        build_file(cluster.platform);
    measure();
}

void TreePlatform::build_star(const std::vector<StarHost>& hosts) {
    star_ = true;
    hosts_.reserve(hosts.size());
    nodes_.reserve(hosts.size());
    for (const StarHost& host : hosts) {
        hosts_.push_back({host.name, host.speed, host.cores});
        nodes_.push_back({host.bandwidth, host.latency, -1, 1});
    }
}

void TreePlatform::build_file(const std::string& path) {
    if (!path.ends_with(".json")) refuse(path, "a file of SimGrid's");
    const JsonPlatform plan = read_platform_json(path);
    build_star(plan.hosts);
    if (std::holds_alternative<StarShape>(plan.shape)) return;
    star_ = false;
    if (const auto* tree = std::get_if<FatTreeShape>(&plan.shape)) {
        const auto one = [](unsigned ways) { return ways == 1; };
        if (!std::ranges::all_of(tree->up, one) || !std::ranges::all_of(tree->parallel, one))
            refuse(path, "a fat tree with several ways (\"up\" or \"parallel\" above 1)");
        build_fat_tree(*tree);
    } else if (const auto* other = std::get_if<TreeShape>(&plan.shape)) {
        build_tree(*other);
    } else {
        refuse(path, std::holds_alternative<FullShape>(plan.shape) ? "a full graph" : "a torus");
    }
}

void TreePlatform::build_fat_tree(const FatTreeShape& tree) {
    // Hosts of one leaf switch follow one another, and so do the switches of each level.
    std::size_t begin = 0;
    for (const unsigned down : tree.down) {
        const std::size_t end = nodes_.size();
        for (std::size_t node = begin; node < end; ++node) {
            nodes_[node].bandwidth = tree.link.bandwidth;
            nodes_[node].latency = tree.link.latency;
            nodes_[node].above = static_cast<std::int32_t>(end + (node - begin) / down);
        }
        nodes_.resize(end + (end - begin) / down);
        begin = end;
    }
}

void TreePlatform::build_tree(const TreeShape& tree) {
    const std::size_t n = nodes_.size();
    for (std::size_t host = 0; host < n; ++host)
        nodes_[host].above = static_cast<std::int32_t>(n) + tree.switch_of_host[host];
    for (const TreeShape::Switch& each : tree.switches) switches_.push_back(each.name);
    for (const TreeShape::Switch& each : tree.switches)
        nodes_.push_back({each.link.bandwidth, each.link.latency,
                          each.under < 0 ? -1 : static_cast<std::int32_t>(n) + each.under, 0});
}

void TreePlatform::measure() {
    depth_ = 1;
    if (star_) return;
    for (Node& node : nodes_) {
        node.depth = 0;
        for (std::int32_t above = node.above; above >= 0; above = nodes_[static_cast<std::size_t>(above)].above)
            ++node.depth;
        depth_ = std::max(depth_, static_cast<int>(node.depth));
    }
}

void TreePlatform::scale_bandwidth(const std::string& name, double factor) {
    std::vector<std::string> names;
    for (const HostInfo& host : hosts_) names.push_back(host.name);
    names.insert(names.end(), switches_.begin(), switches_.end());
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) throw no_such("link", name, names);
    if (full_.empty())
        for (const Node& node : nodes_) full_.push_back(node.bandwidth);
    const auto node = static_cast<std::size_t>(found - names.begin());
    nodes_[node].bandwidth = full_[node] * factor;
}

/// Calls `up` for each node whose upward link the route takes, and `down` likewise (from the host to the top).
template <class Up, class Down>
void TreePlatform::walk(HostId from, HostId to, Up&& up, Down&& down) const {
    if (from == to) return;
    if (star_) {
        up(from);
        down(to);
        return;
    }
    while (from != to) {
        const auto& a = nodes_[static_cast<std::size_t>(from)];
        const auto& b = nodes_[static_cast<std::size_t>(to)];
        if (a.depth >= b.depth) {
            up(from);
            from = a.above;
        }
        if (b.depth >= a.depth) {
            down(to);
            to = b.above;
        }
    }
}

double TreePlatform::latency(HostId from, HostId to) const {
    double sum = 0;
    const auto add = [&](HostId node) { sum += nodes_[static_cast<std::size_t>(node)].latency; };
    walk(from, to, add, add);
    return sum;
}

double TreePlatform::narrowest(HostId from, HostId to) const {
    double least = std::numeric_limits<double>::infinity();
    const auto take = [&](HostId node) { least = std::min(least, nodes_[static_cast<std::size_t>(node)].bandwidth); };
    walk(from, to, take, take);
    return least;
}

void TreePlatform::find_route(HostId from, HostId to, std::vector<LinkId>& route) const {
    route.clear();
    walk(
        from, to, [&](HostId node) { route.push_back(2 * node); }, [&](HostId node) { route.push_back(2 * node + 1); });
}

double TreePlatform::common_bandwidth(const std::vector<HostId>& from, HostId to) const {
    std::vector<LinkId> common;
    std::vector<LinkId> route;
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (i > 0 && from[i] == from[i - 1]) continue;
        find_route(from[i], to, route);
        if (i == 0)
            common = route;
        else
            std::erase_if(common, [&](LinkId link) { return std::ranges::find(route, link) == route.end(); });
    }
    double least = std::numeric_limits<double>::infinity();
    for (const LinkId link : common) least = std::min(least, bandwidth(link));
    return least;
}

}  // namespace rubato::sim
