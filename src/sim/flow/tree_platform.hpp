// Stars and trees as a value: what the flow network moves its transfers over.
#pragma once

#include "sim/network.hpp"

#include <vector>

namespace rubato::sim {

struct StarHost;
struct FatTreeShape;
struct TreeShape;

/// One direction of the link above a node: 2 * node for what goes up, 2 * node + 1 for what comes down.
using LinkId = std::int32_t;

/// Hosts and switches, each with a full-duplex link to the node above it.
class TreePlatform {
public:
    /// The platform of the request: the inline star, or a JSON file. Throws PlatformError for what is no tree.
    explicit TreePlatform(const NetworkRequest& request);

    const std::vector<HostInfo>& hosts() const { return hosts_; }
    /// Whether each host has its private link to one center.
    bool star() const { return star_; }
    std::size_t links() const { return 2 * nodes_.size(); }
    /// Most links of a route.
    int longest_route() const { return 2 * depth_; }
    double bandwidth(LinkId link) const { return nodes_[static_cast<std::size_t>(link / 2)].bandwidth; }  ///< bytes/s
    /// From now on the link above a host or a switch has so many times the bandwidth that the platform gives it. Throws
    /// PlatformError where there is no such node.
    void scale_bandwidth(const std::string& name, double factor);
    /// s of the route between two hosts; 0 within one.
    double latency(HostId from, HostId to) const;
    /// Bytes/s of the narrowest link; infinite within a host.
    double narrowest(HostId from, HostId to) const;
    /// The links of the route into `route`, which is cleared.
    void find_route(HostId from, HostId to, std::vector<LinkId>& route) const;
    /// Narrowest of the links that the routes of all `from` to `to` share, in bytes/s; infinite where they share none.
    double common_bandwidth(const std::vector<HostId>& from, HostId to) const;

private:
    struct Node {
        double bandwidth = 0;  ///< bytes/s of each direction of the link above
        double latency = 0;    ///< s of it
        std::int32_t above = -1;
        std::int32_t depth = 0;  ///< links to the root
    };
    template <class Up, class Down>
    void walk(HostId from, HostId to, Up&& up, Down&& down) const;
    void build_star(const std::vector<StarHost>& hosts);
    void build_file(const std::string& path);
    void build_fat_tree(const FatTreeShape& tree);
    void build_tree(const TreeShape& tree);
    void measure();

    std::vector<HostInfo> hosts_;
    std::vector<std::string> switches_;  ///< names of the nodes after the hosts, as far as they have any
    std::vector<double> full_;           ///< bandwidths of the platform, by node; empty: nothing was scaled yet
    std::vector<Node> nodes_;            ///< hosts, then switches; of a star the center is not among them
    int depth_ = 1;
    bool star_ = false;
};

}  // namespace rubato::sim
