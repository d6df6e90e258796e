// What a worker knows of who takes part: the driver tells it of each crash and return. Messages that go among members
// whom it has not heard of yet are held until it has.
#pragma once

#include "core/averaging/members.hpp"
#include "core/let_go.hpp"

#include <utility>
#include <vector>

namespace rubato {

class Among {
public:
    Among(WorkerId worker, int lambda) : worker_(worker), lambda_(lambda), members_(lambda) {}

    const Members& members() const { return members_; }
    /// It has crashed, is back, and has not been told who is there.
    bool outside() const { return joined_ == not_told; }
    /// Of messages among those after change `group`: it has not heard of them yet; it was not among them.
    bool early(int group) const { return outside() || group > members_.number(); }
    bool late(int group) const { return outside() ? group <= gone_ : group < joined_; }

    /// Nothing new; it is not among those who are there, whose messages it does not wait for; it is; others have
    /// changed.
    enum class News { none, gone, joined, changed };
    News on(const Membership& change) {
        if (change.number < 0) {
            lacking_.push_back(change.worker);
            return News::none;
        }
        if (!change.there && change.worker == worker_) {
            gone_ = change.number;
            return News::gone;
        }
        if (change.there && change.worker == worker_) {
            members_.begin_from(change.number, std::exchange(lacking_, {}));
            joined_ = change.number;
            return News::joined;
        }
        if (change.number <= members_.number()) return News::none;
        members_.change(change.worker, change.there);
        return News::changed;
    }

    void hold(const Delivered& event) { held_.push_back(event); }
    /// Each of them once more: take(event) may hold it again.
    template <class Take>
    void take_held(Take&& take) {
        for (const Delivered& event : std::exchange(held_, {})) take(event);
    }
    void drop_held(Actions& actions) {
        for (Delivered& event : held_) let_go(event.payload.buffer, actions);
        held_.clear();
    }
    void crash(Actions& actions) {
        drop_held(actions);
        members_ = Members(lambda_);
        lacking_.clear();
        joined_ = gone_ = not_told;
    }
    /// A reduce among those of now. beside: the worker computes meanwhile.
    TreeReduce reduce(bool beside) const { return members_.reduce(worker_, beside); }
    bool operator==(const Among&) const = default;

private:
    static constexpr std::int32_t not_told = -1;

    WorkerId worker_;
    int lambda_;
    Members members_;
    std::vector<Delivered> held_;
    std::vector<WorkerId> lacking_;  ///< who is absent, as it is told of when it is back
    std::int32_t joined_ = 0;        ///< number of the change by which it is there
    std::int32_t gone_ = not_told;   ///< after so many changes it was not
};

}  // namespace rubato
