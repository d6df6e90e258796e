// Who of the workers takes part in what all of them do together: all, but for those that have crashed and are not back.
// The driver numbers the changes and tells all workers of them, so that a broadcast or a reduce can say among whom it
// goes: those who are there after its first `number` changes. A worker that is back begins from those who are there
// then, and takes no part in what goes among those of before: whoever has not heard of its crash may still send it
// that.
#pragma once

#include "core/averaging/broadcast.hpp"
#include "core/averaging/tree_reduce.hpp"
#include "core/scenario.hpp"
#include "core/shards.hpp"

#include <algorithm>
#include <vector>

namespace rubato {

/// Numbers the models of rounds: more than one may begin with the same version, where nobody was left to end one.
inline std::int64_t serial_of(const Model& model) {
    return model.number > 0 ? model.number : model.version;
}

class Members {
public:
    Members() = default;
    explicit Members(int lambda) : lambda_(lambda) {}

    int number() const { return base_ + static_cast<int>(changes_.size()); }
    void change(WorkerId worker, bool there) {
        changes_.push_back({worker, there});
        apply(changes_.back(), absent_);
    }
    /// Those who are absent after `number` changes, in order; nobody asks about fewer changes.
    void begin_from(int number, std::vector<WorkerId> absent) {
        base_ = number;
        base_absent_ = absent_ = std::move(absent);
        changes_.clear();
    }
    /// Nobody asks about fewer changes any more.
    void forget_before(int number) {
        if (number <= base_) return;
        base_absent_ = absent(number);
        changes_.erase(changes_.begin(), changes_.begin() + (number - base_));
        base_ = number;
    }
    /// The last change.
    Membership last() const { return {changes_.back().worker, changes_.back().there, number()}; }
    /// Those who are not there after the first `number` changes, in order of their indices.
    std::vector<WorkerId> absent(int number) const {
        std::vector<WorkerId> out = base_absent_;
        for (auto change = changes_.begin(); change != changes_.begin() + (number - base_); ++change)
            apply(*change, out);
        return out;
    }
    const std::vector<WorkerId>& absent() const { return absent_; }
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
    /// The driver's part in a broadcast of `payload`, `swarm` or binomial, among those of now.
    void spread(const Slice& payload, const SpreadSpec& how, Broadcast& broadcast) const {
        const std::vector<WorkerId>& gone = absent();
        const int size = lambda_ - static_cast<int>(gone.size());
        if (!how.swarms(payload.count)) {
            for (const RoleId role : below(0, number())) broadcast.add(role, payload);
            return;
        }
        int next = 0;
        for (const Range& chunk : even_ranges(payload.count, how.chunks))
            if (chunk.count > 0)
                broadcast.add(at(next++ % size, gone) + 1, {payload.buffer, payload.first + chunk.first, chunk.count});
    }
    /// A worker's part, when a piece of what is `whole` elements in all has come from `from`, among those of `number`.
    void pass_on(RoleId role, RoleId from, const Slice& piece, std::int64_t whole, const SpreadSpec& how, int number,
                 Broadcast& broadcast) const {
        const std::vector<WorkerId>& gone = absent();
        const auto add = [&](RoleId to) {
            if (!std::binary_search(gone.begin(), gone.end(), to - 1)) broadcast.add(to, piece);
        };
        if (!how.swarms(whole)) {
            for (const RoleId to : below(role, number)) add(to);
        } else if (from == 0 && piece.count < whole) {
            const std::vector<WorkerId> then = absent(number);
            const int size = lambda_ - static_cast<int>(then.size()), own = rank(role - 1, then);
            // Backwards: forwards, all of them would keep up with the driver, and meet at the same worker's link.
            for (int i = 1; i < size; ++i) add(at((own + size - i) % size, then) + 1);
        }
    }
    /// Workers that may lack something of a broadcast among those of `number` since this one is gone.
    std::vector<RoleId> depend_on(RoleId role, int number, const SpreadSpec& how) const {
        if (!how.swarm) return below(role, number);
        std::vector<RoleId> all;
        for (RoleId other = 1; other <= lambda_; ++other)
            if (other != role) all.push_back(other);
        return all;
    }
    /// A reduce among those of now.
    TreeReduce reduce(WorkerId worker, bool beside) const {
        const std::vector<WorkerId>& gone = absent();
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
    static void apply(const Change& change, std::vector<WorkerId>& absent) {
        const auto at = std::lower_bound(absent.begin(), absent.end(), change.worker);
        const bool listed = at != absent.end() && *at == change.worker;
        if (change.there && listed) absent.erase(at);
        if (!change.there && !listed) absent.insert(at, change.worker);
    }
    static int rank(WorkerId worker, const std::vector<WorkerId>& gone) {
        return worker - static_cast<int>(std::lower_bound(gone.begin(), gone.end(), worker) - gone.begin());
    }
    static WorkerId at(int rank, const std::vector<WorkerId>& gone) {
        for (const WorkerId worker : gone)
            if (worker <= rank) ++rank;
        return rank;
    }

    int lambda_ = 0;
    int base_ = 0;  ///< changes that are forgotten, but for who was absent after them
    std::vector<WorkerId> base_absent_;
    std::vector<Change> changes_;
    std::vector<WorkerId> absent_;  ///< after all
};

}  // namespace rubato
