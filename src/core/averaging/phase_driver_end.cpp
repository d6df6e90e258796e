// What of the driver is saved, and how its run ends.
#include "core/averaging/phase_driver.hpp"

#include <utility>

namespace rubato {

// Between two versions: x and v are whole then.
void PhaseDriver::save_if_due(Time now, Actions& actions) {
    if (!books_.save_due(now, stopping_)) return;
    for (const Peer& it : peers_)
        if (!books_.can_leave_out(it.rows)) return;
    for (const Shard& it : shards_)
        if (!books_.can_leave_out(it.rows)) return;
    ServerState state = books_.state(now, next_id());
    state.joint.rounds = cycle_ + 1;
    for (const Shard& it : shards_) {
        state.joint.means.push_back(it.means);
        if (it.in_round && it.round.version > 0) state.joint.untold.push_back(it.round);
    }
    state.joint.trend = motion_ != no_buffer;
    books_.save(std::move(state), weights_, motion_, actions);
}

// What is being made is saved, too.
void PhaseDriver::end_interrupted(Time now, Actions& actions) {
    if (!books_.interrupted() || stopping_ || is_made()) return;
    save_if_due(now, actions);
    begin_stop(Status::interrupted, actions);
}

void PhaseDriver::on(Time now, const Saved& event, Actions& actions) {
    books_.on(event);
    go_on(now, actions);
}

void PhaseDriver::on(Time now, const TimerFired&, Actions& actions) {
    if (!stopping_) begin_stop(Status::finished, actions);
    go_on(now, actions);
}

void PhaseDriver::on(Time now, const Interrupted&, Actions& actions) {
    books_.interrupt();
    end_interrupted(now, actions);
    go_on(now, actions);
}

// Stages that have begun are gone through to their ends, so that every message that was sent finds its receiver there,
// but no more models go up: what is not in the joint model by then is left over.
void PhaseDriver::begin_stop(Status status, Actions& actions) {
    stopping_ = true;
    status_ = status;
    muster_.each([&](RoleId role) { send_stop(role, actions); });
    dismiss(actions);
}

void PhaseDriver::send_stop(RoleId role, Actions& actions) {
    ++sends_under_way_;
    actions.send<Stop>(next_id(), role, Channel::control, {}, peer(role).broadcasts, peer(role).exchanges);
}

void PhaseDriver::leave_over(Actions& actions) {
    for (Shard& it : shards_) JointBooks::leave_over(it.rows, actions);
    for (Peer& it : peers_) JointBooks::leave_over(it.rows, actions);
    for (Shard& it : shards_) it.rows.clear();
    for (Peer& it : peers_) it.rows.clear();
}

void PhaseDriver::try_finish(Time now, Actions& actions) {
    if (finished_ || making_ != Making::nothing || reduce_ != Stage::done || broadcast_ != Stage::done ||
        prepare_ != Stage::done)
        return;
    if (books_.final_evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
    if (sends_under_way_ > 0 || books_.evaluating() || books_.saving()) return;
    if (count([](const Peer& it) { return !it.bye || it.told < it.expected; }) > 0) return;
    leave_over(actions);
    for (Shard& it : shards_) {
        state_round(it, actions);
        let_go(it.sum.mean.buffer, actions);
        let_go(it.published, actions);
    }
    finished_ = true;
    let_go(weights_, actions);
    let_go(motion_, actions);
    actions.list.emplace_back(books_.finish(status_));
}

// What it has told of is in the rows; it may have begun one more.
void PhaseDriver::on(Time, const PeerLost& event, Actions& actions) {
    books_.state_lost(event.peer - 1, 0, peer(event.peer).told, config_.data, actions);
}

void PhaseDriver::on(Time, const Abandoned& event, Actions& actions) {
    leave_over(actions);
    for (Shard& it : shards_) state_round(it, actions);
    finished_ = true;
    actions.list.emplace_back(Finish{event.status});
}

}  // namespace rubato
