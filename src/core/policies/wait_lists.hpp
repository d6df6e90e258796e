// Workers in lists by a whole number: who waits until some count is reached, or for whom.
#pragma once

#include "core/types.hpp"

#include <deque>
#include <type_traits>
#include <utility>
#include <vector>

namespace rubato {

/// Each worker is in one list at most. Adding, taking out and moving on cost the same however many workers there are.
class WaitLists {
public:
    static constexpr std::int64_t nowhere = -1;

    explicit WaitLists(int lambda = 0)
        : key_(static_cast<std::size_t>(lambda), nowhere), links_(static_cast<std::size_t>(lambda)) {}

    /// The number of the list that a worker is in; `nowhere`: in none.
    std::int64_t key(WorkerId worker) const { return key_[at(worker)]; }
    int size() const { return static_cast<int>(key_.size()); }
    bool empty() const { return heads_.empty(); }
    /// Of the lists that are not empty; not to be asked where all are.
    std::int64_t lowest() const { return base_; }
    WorkerId any_of_lowest() const { return heads_.front(); }

    /// key >= 0. The worker is in no list.
    void add(std::int64_t key, WorkerId worker) {
        if (heads_.empty()) base_ = key;
        for (; key < base_; --base_) heads_.push_front(-1);
        while (key >= base_ + static_cast<std::int64_t>(heads_.size())) heads_.push_back(-1);
        key_[at(worker)] = key;
        WorkerId& head = head_of(key);
        links_[at(worker)] = {-1, head};
        if (head >= 0) links_[at(head)].before = worker;
        head = worker;
    }
    /// From the list that it is in, if it is in one.
    void remove(WorkerId worker) {
        const std::int64_t key = std::exchange(key_[at(worker)], nowhere);
        if (key == nowhere) return;
        const Link link = links_[at(worker)];
        if (link.after >= 0) links_[at(link.after)].before = link.before;
        (link.before >= 0 ? links_[at(link.before)].after : head_of(key)) = link.after;
        trim();
    }
    /// Appends a list to `out`, newest first, and empties it.
    void take(std::int64_t key, std::vector<WorkerId>& out) {
        if (key < base_ || key >= base_ + static_cast<std::int64_t>(heads_.size())) return;
        for (WorkerId worker = std::exchange(head_of(key), -1); worker >= 0; worker = links_[at(worker)].after) {
            out.push_back(worker);
            key_[at(worker)] = nowhere;
        }
        trim();
    }
    /// The same with all lists up to `key`.
    void take_until(std::int64_t key, std::vector<WorkerId>& out) {
        while (!heads_.empty() && base_ <= key) take(base_, out);
    }

    bool operator==(const WaitLists&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("keys", self.key_);
        if constexpr (!std::is_const_v<Self>) self.rebuild();
    }

private:
    struct Link {
        WorkerId before = -1, after = -1;
        bool operator==(const Link&) const = default;
    };
    static std::size_t at(WorkerId worker) { return static_cast<std::size_t>(worker); }
    WorkerId& head_of(std::int64_t key) { return heads_[static_cast<std::size_t>(key - base_)]; }
    void trim() {
        while (!heads_.empty() && heads_.back() < 0) heads_.pop_back();
        while (!heads_.empty() && heads_.front() < 0) {
            heads_.pop_front();
            ++base_;
        }
    }
    void rebuild() {
        const auto keys = std::exchange(key_, std::vector<std::int64_t>(key_.size(), nowhere));
        links_.assign(keys.size(), {});
        heads_.clear();
        for (std::size_t worker = 0; worker < keys.size(); ++worker)
            if (keys[worker] != nowhere) add(keys[worker], static_cast<WorkerId>(worker));
    }

    std::vector<std::int64_t> key_;  ///< by worker
    std::vector<Link> links_;        ///< by worker
    std::deque<WorkerId> heads_;     ///< of each list from `base_` on; -1: it is empty
    std::int64_t base_ = 0;
};

}  // namespace rubato
