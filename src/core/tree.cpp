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

Tree make_tree(const Scenario& scenario) {
    if (scenario.topology != "tree") return {};
    const int fan_out = scenario.tree.fan_out;
    if (!scenario.tree.leaves_by_host) return {even_leaves(scenario.lambda(), fan_out), fan_out};
    std::vector<int> leaves;
    int last = -1;
    for (const int host : worker_hosts(scenario.workers)) {
        if (host != last) leaves.push_back(0);
        ++leaves.back();
        last = host;
    }
    return {leaves, fan_out};
}

int gradients_of_relay(int gradients, int lambda, int below) {
    const std::int64_t share = static_cast<std::int64_t>(below) * gradients / std::max(1, lambda);
    for (auto divisor = static_cast<int>(share); divisor > 1; --divisor)
        if (gradients % divisor == 0) return divisor;
    return 1;
}

}  // namespace rubato
