// Trees of servers (topology "tree"; Gupta et al. 2015, section 3.2, Rudra-adv): the root owns the version, and relays
// stand between it and the workers. Role 0 is the root, 1 .. lambda are the workers, lambda + 1 .. the relays: first
// the leaves, in the order of their workers, then level after level towards the root. With topology "tree-downcast"
// (Rudra-adv*) the weights take another way down, from worker to worker.
#pragma once

#include "core/scenario.hpp"

#include <vector>

namespace rubato {

class Tree {
public:
    /// A node between the root and the workers; below it are the workers first <= w < end.
    struct Relay {
        RoleId role = 0;
        RoleId parent = 0;
        WorkerId first = 0, end = 0;
        std::vector<RoleId> children;  ///< workers, of a leaf, or relays; in the order of their workers
        std::vector<WorkerId> ends;    ///< of the workers of each child
        int workers() const { return end - first; }
        bool operator==(const Relay&) const = default;
    };

    /// Without relays: a star.
    Tree() = default;
    /// leaves: how many workers each has, the first ones first. Above them come as many levels as it takes until the
    /// root has at most fan_out (>= 2) children, each as even as can be.
    Tree(const std::vector<int>& leaves, int fan_out);

    bool star() const { return relays_.empty(); }
    int lambda() const { return static_cast<int>(leaf_of_.size()); }
    const std::vector<Relay>& relays() const { return relays_; }
    const Relay& relay(RoleId role) const { return relays_[static_cast<std::size_t>(role - lambda() - 1)]; }
    /// Relays whose parent is the root.
    const std::vector<RoleId>& top() const { return top_; }
    /// Whom a worker talks with.
    RoleId server_of(WorkerId worker) const { return star() ? 0 : leaf_of_[static_cast<std::size_t>(worker)]; }
    /// Relays from a worker up to the root.
    int depth() const;

    /// Weights go down a tree of their own, over the root and the workers (Rudra-adv*).
    bool downcast() const { return !below_root_.empty(); }
    /// Who passes weights on to a worker: the root or another worker; -1: its leaf does.
    RoleId feeder_of(WorkerId worker) const { return downcast() ? feeders_[static_cast<std::size_t>(worker)] : -1; }
    /// Workers that are passed weights on by the root, or by a worker; ascending.
    const std::vector<RoleId>& fed_by_root() const { return below_root_; }
    std::vector<RoleId> fed_by(WorkerId worker) const;
    /// Makes that tree. Each node passes weights on to the first workers of at most fan_out hosts, and to at most
    /// fan_out workers of its own host. hosts: index of the host of each worker, ascending.
    void lay_downcast(const std::vector<int>& hosts, int fan_out);
    bool operator==(const Tree&) const = default;

private:
    std::vector<Relay> relays_;
    std::vector<RoleId> top_;
    std::vector<RoleId> leaf_of_;  ///< by worker
    std::vector<RoleId> below_root_;
    std::vector<RoleId> feeders_;             ///< by worker
    std::vector<std::vector<RoleId>> below_;  ///< by worker
};

/// As few leaves as can be with at most fan_out workers each, as even as can be.
std::vector<int> even_leaves(int lambda, int fan_out);

/// Index of the host of each worker, in ascending order, as the scenario has it: workers.hosts, or per_host of its
/// groups (0: a host each).
std::vector<int> worker_hosts(const WorkersSpec& workers);

/// The tree of a scenario; a star where its topology is none.
Tree make_tree(const Scenario& scenario);

/// Gradients that a relay adds up before it passes their sum on, where an update takes `gradients` of lambda workers
/// and `below` are those below it: the largest divisor of `gradients` that is not above the relay's share of them, so
/// that sums add up to an update exactly wherever they can.
int gradients_of_relay(int gradients, int lambda, int below);

}  // namespace rubato
