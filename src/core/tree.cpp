#include "core/tree.hpp"

#include <algorithm>
#include <cstdint>

namespace rubato {
namespace {

/// `count` things in ceil(count / most) groups, as even as can be.
std::vector<int> even_groups(int count, int most) {
    const std::int64_t groups = (count + most - 1) / most;
    std::vector<int> sizes;
    for (std::int64_t group = 0; group < groups; ++group)
        sizes.push_back(static_cast<int>((group + 1) * count / groups - group * count / groups));
    return sizes;
}

}  // namespace

Tree::Tree(const std::vector<int>& leaves, int fan_out) {
    RoleId next = 1;
    for (const int size : leaves) next += size;
    WorkerId worker = 0;
    for (const int size : leaves) {
        Relay& leaf = relays_.emplace_back(Relay{next++, 0, worker, worker + size, {}, {}});
        for (; worker < leaf.end; ++worker) {
            leaf.children.push_back(worker + 1);
            leaf.ends.push_back(worker + 1);
            leaf_of_.push_back(leaf.role);
        }
        top_.push_back(leaf.role);
    }
    while (static_cast<int>(top_.size()) > fan_out) {
        std::vector<RoleId> level;
        auto child = top_.begin();
        for (const int size : even_groups(static_cast<int>(top_.size()), fan_out)) {
            const std::vector<RoleId> children(child, child + size);
            child += size;
            std::vector<WorkerId> ends;
            for (const RoleId it : children) {
                relays_[static_cast<std::size_t>(it - lambda() - 1)].parent = next;
                ends.push_back(relay(it).end);
            }
            relays_.push_back({next, 0, relay(children.front()).first, ends.back(), children, ends});
            level.push_back(next++);
        }
        top_ = level;
    }
}

int Tree::depth() const {
    int depth = 0;
    for (RoleId at = star() ? 0 : leaf_of_.front(); at != 0; at = relay(at).parent) ++depth;
    return depth;
}

std::vector<int> even_leaves(int lambda, int fan_out) {
    return even_groups(lambda, fan_out);
}

std::vector<int> worker_hosts(const WorkersSpec& workers) {
    std::vector<int> hosts;
    const std::int64_t lambda = workers.count();
    if (workers.hosts > 0) {
        for (std::int64_t w = 0; w < lambda; ++w) hosts.push_back(static_cast<int>(w * workers.hosts / lambda));
        return hosts;
    }
    int base = 0;
    for (const WorkerGroup& group : workers.groups) {
        const int per_host = std::max(1, group.per_host);
        for (int w = 0; w < group.count; ++w) hosts.push_back(base + w / per_host);
        base += (group.count + per_host - 1) / per_host;
    }
    return hosts;
}

std::vector<RoleId> Tree::fed_by(WorkerId worker) const {
    return downcast() ? below_[static_cast<std::size_t>(worker)] : std::vector<RoleId>{};
}

void Tree::lay_downcast(const std::vector<int>& hosts, int fan_out) {
    feeders_.assign(hosts.size(), 0);
    below_.assign(hosts.size(), {});
    below_root_.clear();
    const auto feed = [&](RoleId feeder, WorkerId worker) {
        feeders_[static_cast<std::size_t>(worker)] = feeder;
        (feeder == 0 ? below_root_ : below_[static_cast<std::size_t>(feeder - 1)]).push_back(worker + 1);
    };
    std::vector<WorkerId> firsts;  // of the hosts
    for (WorkerId worker = 0; worker < static_cast<WorkerId>(hosts.size()); ++worker) {
        const auto at = static_cast<std::size_t>(worker);
        if (worker == 0 || hosts[at] != hosts[at - 1]) {
            // Level after level: the root has the first fan_out ones, the first one the next, and so on.
            const auto place = static_cast<int>(firsts.size());
            feed(place < fan_out ? 0 : firsts[static_cast<std::size_t>(place / fan_out - 1)] + 1, worker);
            firsts.push_back(worker);
        } else {
            const int place = worker - firsts.back() - 1;
            feed(firsts.back() + place / fan_out + 1, worker);
        }
    }
}

namespace {

Tree make_relays(const Scenario& scenario, const std::vector<int>& hosts) {
    const int fan_out = scenario.tree.fan_out;
    if (!scenario.tree.leaves_by_host) return {even_leaves(scenario.lambda(), fan_out), fan_out};
    std::vector<int> leaves;
    int last = -1;
    for (const int host : hosts) {
        if (host != last) leaves.push_back(0);
        ++leaves.back();
        last = host;
    }
    return {leaves, fan_out};
}

}  // namespace

Tree make_tree(const Scenario& scenario) {
    if (!scenario.has_relays()) return {};
    const std::vector<int> hosts = worker_hosts(scenario.workers);
    Tree tree = make_relays(scenario, hosts);
    if (scenario.topology == "tree-downcast") tree.lay_downcast(hosts, scenario.tree.weights_fan_out);
    return tree;
}

int gradients_of_relay(int gradients, int lambda, int below) {
    const std::int64_t share = static_cast<std::int64_t>(below) * gradients / std::max(1, lambda);
    for (auto divisor = static_cast<int>(share); divisor > 1; --divisor)
        if (gradients % divisor == 0) return divisor;
    return 1;
}

}  // namespace rubato
