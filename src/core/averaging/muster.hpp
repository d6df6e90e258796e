// Who takes part, as the driver knows it, who numbers crashes and returns and tells all workers of them. A worker that
// is back takes part again when the driver admits it: in the middle of a collective there is no place for it.
#pragma once

#include "core/averaging/members.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rubato {

class Muster {
public:
    explicit Muster(int lambda) : members_(lambda), there_(static_cast<std::size_t>(lambda), true) {}

    const Members& members() const { return members_; }
    /// Members, and at the end of a run those that are back as it ends.
    bool there(RoleId role) const { return there_[static_cast<std::size_t>(role - 1)]; }
    template <class Do>
    void each(Do&& act) const {
        for (std::size_t i = 0; i < there_.size(); ++i)
            if (there_[i]) act(static_cast<RoleId>(i + 1));
    }
    bool any_back() const { return !back_.empty(); }

    /// It has crashed. Whether it was a member: it may be back without having been admitted.
    bool lose(RoleId role) {
        std::erase(back_, role);
        there_[static_cast<std::size_t>(role - 1)] = false;
        const std::vector<WorkerId>& absent = members_.absent();
        if (std::binary_search(absent.begin(), absent.end(), role - 1)) return false;
        members_.change(role - 1, false);
        return true;
    }
    /// What it is told, so that it lets go of what is for the one of before: that may lie where others wait to send.
    Membership come_back(RoleId role) {
        back_.push_back(role);
        return {role - 1, false, members_.number()};
    }
    /// Those that are back are members now: tell(role, Membership) lets all know. round: of a reduce that begins anew
    /// with them. Returns them.
    template <class Tell>
    std::vector<RoleId> admit(std::int64_t round, Tell&& tell) {
        const std::vector<RoleId> admitted = std::exchange(back_, {});
        for (const RoleId role : admitted) {
            members_.change(role - 1, true);
            Membership change = members_.last();
            change.round = round;
            each([&](RoleId other) { tell(other, change); });
            there_[static_cast<std::size_t>(role - 1)] = true;
            for (const WorkerId absent : members_.absent()) tell(role, Membership{absent, false, -1});
            tell(role, members_.last());
        }
        return admitted;
    }
    /// Nobody asks about members of before.
    void forget() { members_.forget_before(members_.number()); }
    /// Those that are back as the run ends: each is to hear that, and to say its last word.
    std::vector<RoleId> dismiss() {
        for (const RoleId role : back_) there_[static_cast<std::size_t>(role - 1)] = true;
        return std::exchange(back_, {});
    }
    bool operator==(const Muster&) const = default;

private:
    Members members_;
    std::vector<bool> there_;
    std::vector<RoleId> back_;
};

}  // namespace rubato
