// What a worker has of a broadcast, and what it passes on of it, as a part of a role.
#pragma once

#include "core/averaging/members.hpp"

#include <vector>

namespace rubato {

class Passing {
public:
    Passing() = default;
    Passing(RoleId role, const SpreadSpec& how) : role_(role), how_(how) {}

    /// A piece of broadcast `serial`, of `whole` elements in all, has come. False: it has it already, and the role is
    /// to let go of it. Otherwise the piece remains the role's until done().
    bool come(const Members& members, std::int64_t serial, const Delivered& event, const Model& model,
              std::int64_t whole) {
        if (serial < serial_ || (serial == serial_ && complete_)) return false;
        if (serial > serial_) {
            serial_ = serial;
            have_ = 0;
            sends_.begin(model);
        }
        have_ += event.payload.count;
        complete_ = event.payload.count == whole || have_ >= whole;
        members.pass_on(role_, event.from, event.payload, whole, how_, model.group, sends_);
        return true;
    }
    /// Sends the next piece where nothing is under way; whether it has sent something.
    template <class NextId>
    bool go_on(NextId&& next_id, Actions& actions) {
        return sends_.go_on(next_id, actions);
    }
    void lose(RoleId role) { sends_.lose(role); }
    /// Nothing more is sent.
    void end() { sends_.end(); }
    bool is_of(const Taken& event) const { return sends_.is_of(event); }
    void on(const Taken& event) { sends_.on(event); }
    /// All of it is there.
    bool complete() const { return complete_; }
    /// And passed on.
    bool done() const { return complete_ && sends_.done(); }
    bool sending() const { return !sends_.done(); }
    RoleId sends_to() const { return sends_.sends_to(); }
    std::int64_t serial() const { return serial_; }
    bool operator==(const Passing&) const = default;

private:
    RoleId role_ = 0;
    SpreadSpec how_;
    std::int64_t serial_ = -1;  ///< of the last one
    std::int64_t have_ = 0;     ///< elements of it
    bool complete_ = true;
    Broadcast sends_;
};

}  // namespace rubato
