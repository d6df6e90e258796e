// Who of the workers takes part in what all of them do together: all, but for those that have crashed and are not back.
// The driver numbers the changes and tells all workers of them, so that a broadcast or a reduce can say among whom it
// goes: those who are there after its first `number` changes.
#pragma once

#include "core/averaging/broadcast.hpp"
#include "core/averaging/tree_reduce.hpp"

#include <algorithm>
#include <vector>

namespace rubato {

class Members {
public:
    Members() = default;
    explicit Members(int lambda) : lambda_(lambda) {}

    int number() const { return static_cast<int>(changes_.size()); }
    void change(WorkerId worker, bool there) { changes_.push_back({worker, there}); }
    /// The word on change `index`, from 0 on.
    Membership change(int index) const {
        const Change& it = changes_[static_cast<std::size_t>(index)];
        return {it.worker, it.there, index + 1};
    }
    /// Those who are not there after the first `number` changes, in order of their indices.
    std::vector<WorkerId> absent(int number) const {
        std::vector<WorkerId> out;
        for (auto change = changes_.begin(); change != changes_.begin() + number; ++change) {
            std::erase(out, change->worker);
            if (!change->there) out.push_back(change->worker);
        }
        std::sort(out.begin(), out.end());
        return out;
    }
    std::vector<WorkerId> absent() const { return absent(number()); }
    int size() const { return lambda_ - static_cast<int>(absent().size()); }

    /// Roles that `role` (0: the driver) sends to in a broadcast among those of `number`, in order.
    std::vector<RoleId> below(RoleId role, int number) const {
        const std::vector<WorkerId> gone = absent(number);
        std::vector<RoleId> out;
        const RoleId node = role == 0 ? 0 : rank(role - 1, gone) + 1;
        for (const int child : broadcast_children(node, lambda_ - static_cast<int>(gone.size()) + 1))
            out.push_back(at(child - 1, gone) + 1);
        return out;
    }
    Broadcast broadcast(RoleId role, int number) const { return Broadcast(below(role, number)); }
    /// A reduce among those of now.
    TreeReduce reduce(WorkerId worker, bool beside) const {
        const std::vector<WorkerId> gone = absent();
        const int own = rank(worker, gone);
        std::vector<WorkerId> children;
        for (const int child : reduce_children(own, lambda_ - static_cast<int>(gone.size())))
            children.push_back(at(child, gone));
        const int parent = reduce_parent(own);
        return {std::move(children), parent < 0 ? 0 : at(parent, gone) + 1, number(), beside};
    }
    bool operator==(const Members&) const = default;

private:
    struct Change {
        WorkerId worker = 0;
        bool there = false;
        bool operator==(const Change&) const = default;
    };
    static int rank(WorkerId worker, const std::vector<WorkerId>& gone) {
        return worker - static_cast<int>(std::lower_bound(gone.begin(), gone.end(), worker) - gone.begin());
    }
    static WorkerId at(int rank, const std::vector<WorkerId>& gone) {
        for (const WorkerId worker : gone)
            if (worker <= rank) ++rank;
        return rank;
    }

    int lambda_ = 0;
    std::vector<Change> changes_;
};

}  // namespace rubato
