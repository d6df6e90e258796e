// A binary-tree reduce as a part of a role: the weighted mean of one model of each member, of depth ceil(log2 members).
//
// In step l member i, a multiple of 2^(l+1), adds what member i + 2^l has: pairs of a mean and its weight, which say
// the same as the pairs (tau * x, tau) of Langer et al. 2018, equation 9, do not grow, and leave equal models as they
// are, bit for bit. Member 0 has the whole. Means are taken in the order of the steps, whatever came first.
#pragma once

#include "core/action.hpp"

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
    /// beside: the member computes meanwhile.
    TreeReduce(int rank, int size, bool beside = false)
        : children_(reduce_children(rank, size)), came_(children_.size()), beside_(beside) {}

    /// The member's own contribution; takes over its reference to the payload. lent: others may hold it, too.
    void begin(const Sum& own, bool lent = true) {
        sum_ = own;
        begun_ = true;
        own_ = !lent && own.mean.buffer != no_buffer;
    }
    /// That of a child has come, which may be before the member's own; takes over the reference.
    void come(int rank, const Sum& sum) {
        for (std::size_t i = 0; i < children_.size(); ++i)
            if (children_[i] == rank) came_[i] = {true, sum};
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
                drop(sum_.mean, actions);
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
    bool is_of(const Mixed& event) const { return mixing_ != 0 && mixing_ == event.id; }
    void on(const Mixed& event, Actions& actions) {
        mixing_ = 0;
        if (!own_) actions.add<Release>(sum_.mean.buffer);
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
    /// Once done, the sum, with the reference to it; and from the beginning.
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

    std::vector<int> children_;
    std::vector<Came> came_;  ///< by child
    bool beside_ = false;
    std::size_t next_ = 0;  ///< child that is added next
    Sum sum_;
    bool begun_ = false;
    bool own_ = false;  ///< the mean is in a buffer of its own
    ActionId mixing_ = 0;
};

}  // namespace rubato
