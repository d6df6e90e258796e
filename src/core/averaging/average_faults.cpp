// Workers of synchronous averaging that crash and come back (Langer et al. 2018, section 5.3): the rest go on with K
// - 1.
//
// What a lost worker has done in the round under way is lost with it. The others keep what they have made, and reduce
// it anew among themselves; whoever was to have the model from the lost one has it from the driver. A worker that is
// back takes part from the next round on.
#include "core/averaging/average_driver.hpp"

#include <algorithm>

namespace rubato {

int AverageDriver::active() const {
    int number = 0;
    muster_.each([&](RoleId role) { number += has_data(role); });
    return number;
}

void AverageDriver::tell(RoleId role, const Membership& change, Actions& actions) {
    ++sends_under_way_;
    actions.add<Send>(next_id(), role, Channel::control, Message(change), Slice{});
}

void AverageDriver::send_model(RoleId role, Actions& actions) {
    ++sends_under_way_;
    actions.add<Send>(next_id(), role, Channel::weights, Message(model_), exchanged(round_.round - 1, weights_));
}

void AverageDriver::send_whole(RoleId role, std::int64_t number, Actions& actions) {
    Model whole = model_;
    whole.group = muster_.members().number();
    whole.number = number;
    ++sends_under_way_;
    actions.add<Send>(next_id(), role, Channel::weights, Message(whole), Slice{weights_, 0, config_.run.parameters});
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

void AverageDriver::drop_early(WorkerId worker, Actions& actions) {
    for (const auto& [from, push] : early_)
        if (from == worker) actions.gradients.push_back(unapplied_row(worker, push, Outcome::dropped));
    std::erase_if(early_, [&](const auto& it) { return it.first == worker; });
}

// Steps that are in a mean that is let go are in no version; where the run ends they are left over.
void AverageDriver::give_up_round(Actions& actions) {
    running_ = false;
    given_up_ = true;
    broadcast_.end();
    ++restarts_;
    let_go(sum_.mean.buffer, actions);
    if (stopping_) return;
    for (RoleId role = 1; role <= config_.run.lambda; ++role) drop_rows(role - 1, actions);
}

void AverageDriver::on(Time now, const PeerDown& event, Actions& actions) {
    if (finished_) return;
    books_.lose(event.peer - 1, event.begun);
    if (!muster_.lose(event.peer)) return try_finish(now, actions);
    broadcast_.lose(event.peer);
    peer(event.peer).anew = false;
    const bool anew = running_ && !summed_;
    if (anew) drop_rows(event.peer - 1, actions);
    drop_early(event.peer - 1, actions);
    const Membership change{event.peer - 1, false, muster_.members().number(), anew ? serial_of(model_) : -1,
                            stopping_};
    muster_.each([&](RoleId role) { tell(role, change, actions); });
    if (running_ && (stopping_ || (active() == 0 && !streams()))) {
        give_up_round(actions);
        if (!stopping_ && muster_.any_back()) begin_round(now, actions);
    }
    if (stopping_) return try_finish(now, actions);
    if (!running_) return;
    try_rejoin(actions);
    // Where nothing was spread all have had the model from the beginning, and the driver's own word.
    if (anew && spread_)
        for (const RoleId role : muster_.members().depend_on(event.peer, model_.group, config_.averaging.spread))
            if (muster_.there(role) && (!peer(role).merged || peer(role).whole)) send_model(role, actions);
    try_prepare(now, actions);
}

void AverageDriver::on(Time now, const PeerBack& event, Actions& actions) {
    if (finished_) return;
    peer(event.peer).bye = false;
    const Membership gone = muster_.come_back(event.peer);
    if (!stopping_) tell(event.peer, gone, actions);
    if (stopping_) {
        for (const RoleId role : muster_.dismiss()) send_stop(role, -1, 0, actions);
        return;
    }
    if (!running_ && !preparing_) return begin_round(now, actions);
    try_rejoin(actions);
}

void AverageDriver::take_back(Actions& actions) {
    const auto say = [&](RoleId role, const Membership& it) { tell(role, it, actions); };
    for (const RoleId role : muster_.admit(-1, say)) peer(role).anew = true;
    muster_.forget();
}

// Where nobody was left with data, a round of fragments waits for those that are back: others are in the midst of it.
void AverageDriver::try_rejoin(Actions& actions) {
    if (!streams() || !running_ || summed_ || active() > 0) return;
    const auto say = [&](RoleId role, const Membership& it) { tell(role, it, actions); };
    for (const RoleId role : muster_.admit(serial_of(model_), say)) {
        peer(role).steps = 0;
        send_whole(role, Model::whole_alone, actions);
    }
}

}  // namespace rubato
