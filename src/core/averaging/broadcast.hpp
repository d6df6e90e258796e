// A binomial broadcast as a part of a role: in step s every node below 2^s, which has the model by then, sends it to
// the one 2^s further on. One message of a node at a time, so that each has the whole of its link: ceil(log2 nodes)
// steps.
#pragma once

#include "core/action.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rubato {

/// Nodes that node `node` of `nodes` sends to, in order; node 0 has the model at first.
inline std::vector<int> broadcast_children(int node, int nodes) {
    std::vector<int> children;
    std::int64_t step = 1;
    while (step <= node) step *= 2;
    for (; node + step < nodes; step *= 2) children.push_back(static_cast<int>(node + step));
    return children;
}
/// The node that it has the model from; -1: from nobody.
inline int broadcast_parent(int node) {
    int step = 1;
    while (2 * step <= node) step *= 2;
    return node == 0 ? -1 : node - step;
}

/// Nodes are roles: the driver is node 0, worker w node 1 + w. The payload remains the role's, which owns a reference
/// until done().
class Broadcast {
public:
    Broadcast() = default;
    /// children: roles, in the order in which they are sent to.
    explicit Broadcast(std::vector<RoleId> children) : children_(std::move(children)), next_(children_.size()) {}
    void begin(const Model& model, const Slice& payload) {
        model_ = model;
        payload_ = payload;
        next_ = 0;
    }
    /// Sends to the next one where nothing is under way; whether it has sent something.
    template <class NextId>
    bool go_on(NextId&& next_id, Actions& actions) {
        if (sending_ != 0 || next_ == children_.size()) return false;
        actions.add<Send>(sending_ = next_id(), children_[next_++], Channel::weights, Message(model_), payload_);
        return true;
    }
    /// One that has crashed is no longer sent to.
    void lose(RoleId role) {
        const auto at = std::find(children_.begin() + static_cast<std::ptrdiff_t>(next_), children_.end(), role);
        if (at != children_.end()) children_.erase(at);
    }
    /// No further one is.
    void end() { next_ = children_.size(); }
    bool is_of(const Taken& event) const { return sending_ != 0 && sending_ == event.id; }
    void on(const Taken&) { sending_ = 0; }
    bool done() const { return sending_ == 0 && next_ == children_.size(); }
    RoleId sends_to() const { return sending_ == 0 ? -1 : children_[next_ - 1]; }
    bool operator==(const Broadcast&) const = default;

private:
    std::vector<RoleId> children_;
    std::size_t next_ = 0;  ///< that it sends to next
    ActionId sending_ = 0;
    Model model_;
    Slice payload_;
};

}  // namespace rubato
