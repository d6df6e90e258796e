// A binary-tree reduce as a part of a role: the weighted mean of one model of each member, of depth ceil(log2 members).
//
// In step l member i, a multiple of 2^(l+1), adds what member i + 2^l has: pairs of a mean and its weight, which say
// the same as the pairs (tau * x, tau) of Langer et al. 2018, equation 9, do not grow, and leave equal models as they
// are, bit for bit. Member 0 has the whole. Means are taken in the order of the steps, whatever came first.
#pragma once

#include "core/action.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rubato {

/// Members that member `rank` of `size` adds to its own, in order.
inline std::vector<int> reduce_children(int rank, int size) {
    std::vector<int> children;
    for (int step = 1; rank % (2 * step) == 0 && rank + step < size; step *= 2) children.push_back(rank + step);
    return children;
}
/// The member that it hands its sum to; -1: it has the whole.
inline int reduce_parent(int rank) {
    return rank == 0 ? -1 : rank & (rank - 1);
}

class TreeReduce {
public:
    /// A mean, the weight behind it, and what else is said of it. Without a buffer there is none.
    struct Sum {
        Slice mean;
        Share said;
        bool operator==(const Sum&) const = default;
    };

    TreeReduce() = default;
    /// children: workers, in the order in which they are added; parent: the role that it hands its sum to; group: which
    /// reduces of the same members have in common (core/averaging/members.hpp). beside: the member computes meanwhile.
    TreeReduce(std::vector<WorkerId> children, RoleId parent, int group, bool beside)
        : children_(std::move(children)), came_(children_.size()), parent_(parent), group_(group), beside_(beside) {}

    /// The member's own contribution. kept: the reference to it remains the member's, for as long as the reduce lasts
    /// and the sum is under way; otherwise it is taken over, and nobody else has one.
    void begin(const Sum& own, bool kept) {
        sum_ = own;
        sum_.said.group = group_;
        begun_ = true;
        own_ = !kept && own.mean.buffer != no_buffer;
    }
    /// That of a child has come, which may be before the member's own; takes over the reference.
    void come(WorkerId worker, const Sum& sum, Actions& actions) {
        const auto child = std::find(children_.begin(), children_.end(), worker);
        if (sum.said.group == group_ && child != children_.end()) {
            came_[static_cast<std::size_t>(child - children_.begin())] = {true, sum};
        } else {  // of members that are no longer these
            Slice mean = sum.mean;
            drop(mean, actions);
        }
    }
    /// What has been summed so far is given up.
    void end(Actions& actions) {
        if (own_) drop(sum_.mean, actions);
        for (Came& it : came_) drop(it.sum.mean, actions);
        begun_ = own_ = false;
        came_.clear();
        children_.clear();
    }
    /// Adds what can be added now; to be called after every event of its own.
    template <class NextId>
    void go_on(NextId&& next_id, Actions& actions) {
        while (begun_ && mixing_ == 0 && next_ < children_.size() && came_[next_].there) {
            const Sum& other = came_[next_].sum;
            Share& said = sum_.said;
            // Where nobody has done anything, all count alike.
            const double all = said.weight + other.said.weight;
            const int workers = said.workers + other.said.workers;
            const double part = all > 0 ? other.said.weight / all : static_cast<double>(other.said.workers) / workers;
            said.weight = all;
            said.workers = workers;
            if (other.said.ready_ns > said.ready_ns) said.ready_ns = other.said.ready_ns;
            if (sum_.mean.buffer == no_buffer || other.mean.buffer == no_buffer) {
                if (own_) drop(sum_.mean, actions);
                sum_.mean = {};
                own_ = false;
                drop(came_[next_].sum.mean, actions);
                came_[next_++] = {};
                continue;
            }
            Mix& mix = actions.add<Mix>();
            mix.id = mixing_ = next_id();
            mix.work = Mix::Work::sum;
            mix.beside = beside_;
            mix.first = sum_.mean.first;
            mix.count = sum_.mean.count;
            mix.add(sum_.mean.buffer, 1 - part);
            mix.add(other.mean.buffer, part);
            if (own_) mix.out = sum_.mean.buffer;  // a mean of its own, which nobody else has
        }
    }
    /// With the member: what a sum under way would give has nobody to go to.
    void crash(Actions& actions) {
        if (std::exchange(mixing_, 0) != 0) own_ = false;
        end(actions);
    }
    bool is_of(const Mixed& event) const { return mixing_ != 0 && mixing_ == event.id; }
    void on(const Mixed& event, Actions& actions) {
        mixing_ = 0;
        own_ = true;
        sum_.mean.buffer = event.out;
        drop(came_[next_].sum.mean, actions);
        came_[next_++] = {};
    }
    /// All members below have been added.
    bool done() const { return begun_ && mixing_ == 0 && next_ == children_.size(); }
    bool begun() const { return begun_; }
    /// The first child that is missing; -1: none is.
    int waits_for() const { return next_ < children_.size() && !came_[next_].there ? children_[next_] : -1; }
    bool mixing() const { return mixing_ != 0; }
    int group() const { return group_; }
    RoleId parent() const { return parent_; }
    /// Whether the sum is another buffer than the member's own contribution, with a reference of its own.
    bool owns() const { return own_; }
    /// Once done, the sum, with the reference to it if it owns() one; and from the beginning.
    Sum take() {
        begun_ = own_ = false;
        next_ = 0;
        return std::exchange(sum_, {});
    }
    bool operator==(const TreeReduce&) const = default;

private:
    struct Came {
        bool there = false;
        Sum sum;
        bool operator==(const Came&) const = default;
    };
    static void drop(Slice& slice, Actions& actions) {
        if (slice.buffer != no_buffer) actions.add<Release>(slice.buffer);
        slice = {};
    }

    std::vector<WorkerId> children_;
    std::vector<Came> came_;  ///< by child
    RoleId parent_ = 0;
    int group_ = 0;
    bool beside_ = false;
    std::size_t next_ = 0;  ///< child that is added next
    Sum sum_;
    bool begun_ = false;
    bool own_ = false;  ///< the mean is in a buffer of its own
    ActionId mixing_ = 0;
};

}  // namespace rubato
