// Workers of synchronous averaging that crash and come back (Langer et al. 2018, section 5.3): the rest go on with K
// - 1.
//
// What a lost worker has done in the round under way is lost with it. The others keep what they have made, and reduce
// it anew among themselves; whoever was to have the model from the lost one has it from the driver. A worker that is
// back takes part from the next round on.
#include "core/averaging/average_driver.hpp"

#include <algorithm>

namespace rubato {

bool AverageDriver::has_data(const Peer& peer) const {
    return own_batch(config_.data, static_cast<WorkerId>(&peer - peers_.data()), 0).count > 0;
}

int AverageDriver::active() const {
    return static_cast<int>(
        std::count_if(peers_.begin(), peers_.end(), [&](const Peer& it) { return !it.down && has_data(it); }));
}

void AverageDriver::tell(RoleId role, const Membership& change, Actions& actions) {
    ++sends_under_way_;
    actions.add<Send>(next_id(), role, Channel::control, Message(change), Slice{});
}

void AverageDriver::send_model(RoleId role, Actions& actions) {
    ++sends_under_way_;
    actions.add<Send>(next_id(), role, Channel::weights, Message(model_), exchanged(round_.round, weights_));
}

void AverageDriver::drop_rows(WorkerId worker, Actions& actions) {
    for (GradientRow& row : rows_) {
        if (row.worker != worker) continue;
        row.outcome = Outcome::dropped;
        round_.steps -= row.count;
        round_.samples -= row.samples;
        actions.gradients.push_back(row);
    }
    std::erase_if(rows_, [&](const GradientRow& row) { return row.worker == worker; });
    Peer& lost = peer(worker + 1);
    if (lost.steps >= model_.steps) --round_.workers;
    lost.steps = 0;
}

void AverageDriver::on(Time now, const PeerDown& event, Actions& actions) {
    Peer& lost = peer(event.peer);
    if (finished_) return;
    books_.lose(event.peer - 1, event.begun);
    if (std::exchange(lost.down, true)) {  // again, before it took part again
        std::erase(back_, event.peer);
        return;
    }
    members_.change(event.peer - 1, false);
    broadcast_.lose(event.peer);
    const bool anew = running_ && !summed_;
    if (anew) drop_rows(event.peer - 1, actions);
    const Membership change{event.peer - 1, false, members_.number(), anew ? serial_of(model_) : -1, stopping_};
    for (RoleId role = 1; role <= config_.run.lambda; ++role)
        if (!peer(role).down) tell(role, change, actions);
    if (running_ && (stopping_ || active() == 0)) {
        running_ = false;
        broadcast_.end();
        ++restarts_;
        let_go(sum_.mean.buffer, actions);
        if (!stopping_ && !back_.empty()) begin_round(now, actions);
    }
    if (stopping_) return try_finish(now, actions);
    if (!running_) return;
    // In the first round all have had the model from the beginning, and the driver's own word.
    if (anew && (model_.version > 0 || model_.group > 0))
        for (const RoleId role : members_.depend_on(event.peer, model_.group, config_.averaging.spread))
            if (!peer(role).down && peer(role).steps == 0) send_model(role, actions);
    try_prepare(now, actions);
}

void AverageDriver::on(Time now, const PeerBack& event, Actions& actions) {
    if (finished_) return;
    peer(event.peer).bye = false;
    if (stopping_) {
        peer(event.peer).down = false;
        return send_stop(event.peer, -1, actions);
    }
    back_.push_back(event.peer);
    if (!running_ && !preparing_) begin_round(now, actions);
}

void AverageDriver::take_back(Actions& actions) {
    for (const RoleId back : std::exchange(back_, {})) {
        members_.change(back - 1, true);
        for (RoleId role = 1; role <= config_.run.lambda; ++role)
            if (!peer(role).down) tell(role, members_.last(), actions);
        peer(back).down = false;
        for (const WorkerId absent : members_.absent()) tell(back, {absent, false, -1}, actions);
        tell(back, {back - 1, true, members_.number()}, actions);
    }
    members_.forget_before(members_.number());
}

}  // namespace rubato
