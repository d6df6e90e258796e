// Workers of gossip that crash and come back. What a lost worker had of the weight is lost with it, and so is what was
// on its way to it: means are of what is left. One that is back has the last mean, and none of the weight: it waits
// until it is handed some, with the model that it goes on from. Where nobody is left who has any, the last mean has it.
#include "core/averaging/gossip_monitor.hpp"
#include "core/averaging/gossip_plan.hpp"

#include <utility>

namespace rubato {

void GossipMonitor::tell(RoleId role, const Membership& change, Actions& actions) {
    ++sends_under_way_;
    actions.add<Send>(next_id(), role, Channel::control, Message(change), Slice{});
}

void GossipMonitor::drop_rows(Peer& lost, Actions& actions) {
    for (GradientRow& row : lost.rows) {
        row.outcome = Outcome::dropped;
        books_.discount(row);
        actions.gradients.push_back(row);
    }
    lost.rows.clear();
}

void GossipMonitor::begin_anew() {
    std::vector<std::vector<GradientRow>> rows(peers_.size());
    for (const GradientRow& row : rows_) rows[static_cast<std::size_t>(row.worker)].push_back(row);
    rows_.clear();
    for (std::size_t i = 0; i < peers_.size(); ++i) {
        peers_[i].rows.insert(peers_[i].rows.begin(), rows[i].begin(), rows[i].end());
        peers_[i].handed_in = false;
    }
    summed_ = false;
    const std::int64_t number = round_.round;
    round_ = {};
    round_.round = number;
}

void GossipMonitor::on(Time now, const PeerDown& event, Actions& actions) {
    if (finished_) return;
    Peer& lost = peer(event.peer);
    books_.lose(event.peer - 1, event.begun);
    const bool member = muster_.lose(event.peer), anew = member && averaging_ && !summed_;
    if (anew) {
        begin_anew();
        mean_group_ = muster_.members().number();
    }
    drop_rows(lost, actions);
    hold(lost, false);
    lost.guest = false;
    lost.handed = 0;
    if (member) {
        const Membership change{event.peer - 1, false, muster_.members().number(), anew ? mean_number() : -1};
        muster_.each([&](RoleId role) { tell(role, change, actions); });
    }
    go_on(now, actions);
}

void GossipMonitor::on(Time now, const PeerBack& event, Actions& actions) {
    if (finished_) return;
    peer(event.peer).bye = false;
    const Membership gone = muster_.come_back(event.peer);
    if (stopping_)
        dismiss(actions);
    else
        tell(event.peer, gone, actions);
    go_on(now, actions);
}

void GossipMonitor::take_back(Actions& actions) {
    const auto say = [&](RoleId role, const Membership& it) {
        if (it.there && it.worker == role - 1) peer(role).joined = it.number;
        tell(role, it, actions);
    };
    for (const RoleId role : muster_.admit(-1, say)) {
        ++sends_under_way_;
        actions.add<Send>(
            next_id(), role, Channel::weights,
            Message(Model{books_.version(), 0, books_.rate(), 0, muster_.members().number(), Model::whole}),
            Slice{weights_, 0, config_.run.parameters});
    }
    muster_.forget();
}

void GossipMonitor::dismiss(Actions& actions) {
    for (const RoleId role : muster_.dismiss()) {
        peer(role).guest = true;
        send_stop(role, no_more_steps, actions);
        send_stop(role, leave_run, actions);
    }
}

void GossipMonitor::give_weight(Actions& actions) {
    if (stopping_ || holders_ > 0) return;
    RoleId to = 0;
    muster_.each([&](RoleId role) {
        if (to == 0 && has_data(role)) to = role;
    });
    if (to == 0) return;
    hold(peer(to), true);
    ++sends_under_way_;
    actions.add<Send>(next_id(), to, Channel::weights, Message(Gossip{to - 1, -1, 1, muster_.members().number()}),
                      Slice{weights_, 0, config_.run.parameters});
}

}  // namespace rubato
