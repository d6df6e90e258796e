// Broadcasts as a part of a role. Each sends one message at a time, so that it has the whole of its link.
//
// binomial: in step s every node below 2^s, which has the model by then, sends it to the one 2^s further on:
// ceil(log2 nodes) steps. swarm: the driver cuts the model into chunks and sends each to one worker, in turn, which
// sends it on to all others, so that the driver's link carries the model once and that of a worker nearly so.
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

/// What a role has to send of a broadcast. Payloads remain the role's, which owns references to them until done().
class Broadcast {
public:
    /// One of what `model` says. What is left of an earlier one is not sent.
    void begin(const Model& model) {
        model_ = model;
        items_.clear();
        next_ = 0;
    }
    void add(RoleId to, const Slice& payload) { items_.push_back({to, payload}); }
    /// Sends to the next one where nothing is under way; whether it has sent something.
    template <class NextId>
    bool go_on(NextId&& next_id, Actions& actions) {
        if (sending_ != 0 || next_ == items_.size()) return false;
        under_way_ = items_[next_++];
        actions.add<Send>(sending_ = next_id(), under_way_.to, Channel::weights, Message(model_), under_way_.payload);
        return true;
    }
    /// One that has crashed is no longer sent to.
    void lose(RoleId role) {
        items_.erase(std::remove_if(items_.begin() + static_cast<std::ptrdiff_t>(next_), items_.end(),
                                    [&](const Item& item) { return item.to == role; }),
                     items_.end());
    }
    /// Nothing more is sent.
    void end() { items_.resize(next_); }
    bool is_of(const Taken& event) const { return sending_ != 0 && sending_ == event.id; }
    void on(const Taken&) { sending_ = 0; }
    bool done() const { return sending_ == 0 && next_ == items_.size(); }
    RoleId sends_to() const { return sending_ == 0 ? -1 : under_way_.to; }
    /// What is under way.
    Slice sends() const { return sending_ == 0 ? Slice{} : under_way_.payload; }
    /// Sends of it that are under way or to come.
    std::int64_t left(const Slice& payload) const {
        return (sending_ != 0 && under_way_.payload == payload) +
               std::count_if(items_.begin() + static_cast<std::ptrdiff_t>(next_), items_.end(),
                             [&](const Item& item) { return item.payload == payload; });
    }
    bool operator==(const Broadcast&) const = default;

private:
    struct Item {
        RoleId to = 0;
        Slice payload;
        bool operator==(const Item&) const = default;
    };

    std::vector<Item> items_;
    std::size_t next_ = 0;  ///< that is sent next
    ActionId sending_ = 0;
    Item under_way_;
    Model model_;
};

}  // namespace rubato
