// Workers of averaging in phases that crash and come back (Langer et al. 2018, section 5.3): the rest go on with K - 1,
// their models as they are.
//
// A reduce to which the mean has not come begins anew among those who are left, each of whom copies its part once more;
// whoever was to have a broadcast shard from the lost one has it from the driver. Steps of the lost worker that are in
// no mean are lost with it. A worker that is back begins from the whole joint model, with the next cycle.
#include "core/averaging/phase_driver.hpp"

#include <algorithm>
#include <utility>

namespace rubato {

bool PhaseDriver::any_active() const {
    bool any = false;
    muster_.each([&](RoleId role) { any = any || own_batch(config_.data, role - 1, 0).count > 0; });
    return any;
}

void PhaseDriver::tell(RoleId role, const Membership& change, Actions& actions) {
    ++sends_under_way_;
    actions.add<Send>(next_id(), role, Channel::control, Message(change), Slice{});
}

void PhaseDriver::drop_rows(WorkerId worker, bool of_reduce, Actions& actions) {
    const auto drop = [&](std::vector<GradientRow>& rows) {
        for (GradientRow& row : rows) {
            if (row.worker != worker) continue;
            row.outcome = Outcome::dropped;
            actions.gradients.push_back(row);
        }
        std::erase_if(rows, [&](const GradientRow& row) { return row.worker == worker; });
    };
    drop(peer(worker + 1).rows);
    if (of_reduce) drop(shard(plan_.reduce).rows);
}

void PhaseDriver::drop_reduced(Actions& actions) {
    if (reduce_ != Stage::runs) return;
    for (RoleId role = 1; role <= config_.run.lambda; ++role) drop_rows(role - 1, true, actions);
}

void PhaseDriver::end_stages(Actions& actions) {
    if (broadcast_ == Stage::runs) {
        broadcast_ = Stage::done;
        sends_.end();
    }
    if (reduce_ != Stage::runs) return;
    reduce_ = Stage::done;
    Shard& it = shard(plan_.reduce);
    let_go(it.sum.mean.buffer, actions);
    it.in_round = false;
}

void PhaseDriver::on(Time now, const PeerDown& event, Actions& actions) {
    if (finished_) return;
    books_.lose(event.peer - 1, event.begun);
    if (!muster_.lose(event.peer)) return go_on(now, actions);
    const Members& members = muster_.members();
    sends_.lose(event.peer);
    const bool anew = reduce_ == Stage::runs && !summed_;
    drop_rows(event.peer - 1, anew, actions);
    if (anew) {
        reduce_group_ = members.number();
        RoundRow& round = shard(plan_.reduce).round;
        round.workers = 0;
        round.steps = 0;
        for (Peer& it : peers_) it.exchanged = false;
    }
    const Membership change{event.peer - 1, false, members.number(), anew ? exchanges_ : -1, stopping_};
    muster_.each([&](RoleId role) { tell(role, change, actions); });
    if (stopping_ || members.size() == 0) {
        if (!stopping_) drop_reduced(actions);
        end_stages(actions);
    } else if (broadcast_ == Stage::runs) {
        for (const RoleId role : members.depend_on(event.peer, sent_.group, config_.spread)) {
            if (!muster_.there(role) || peer(role).received) continue;
            ++sends_under_way_;
            actions.add<Send>(next_id(), role, Channel::weights, Message(sent_),
                              part(plan_.broadcast, shard(plan_.broadcast).published));
        }
    }
    try_end_broadcast(now);
    try_end_reduce(now);
    go_on(now, actions);
}

void PhaseDriver::on(Time now, const PeerBack& event, Actions& actions) {
    if (finished_) return;
    Peer& it = peer(event.peer);
    it.bye = false;
    it.exchanges = it.broadcasts = 0;
    const Membership gone = muster_.come_back(event.peer);
    if (stopping_)
        dismiss(actions);
    else
        tell(event.peer, gone, actions);
    go_on(now, actions);
}

// They have no part in the stages under way.
void PhaseDriver::dismiss(Actions& actions) {
    for (const RoleId role : muster_.dismiss()) {
        peer(role).received = peer(role).exchanged = true;
        send_stop(role, actions);
    }
}

void PhaseDriver::take_back(Actions& actions) {
    for (const RoleId back : muster_.admit(-1, [&](RoleId role, const Membership&it) { tell(role, it, actions); })) {
        ++sends_under_way_;
        actions.add<Send>(
            next_id(), back, Channel::weights,
            Message(Model{books_.version(), 0, books_.rate(), 0, muster_.members().number(), Model::whole}),
            Slice{weights_, 0, config_.run.parameters});
    }
    muster_.forget();
}

}  // namespace rubato
