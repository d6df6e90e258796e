// Workers that are lost and come back. What happens to one takes its turn among the messages, so a policy first hears
// of every gradient that the worker had pushed, then that it is gone, and then that it is back.
#include "core/server.hpp"

#include <algorithm>
#include <utility>

namespace rubato {

void Server::first_has_come(Peer& worker) {
    auto& its = earlier(worker);
    if (!its.empty()) {
        its.erase(its.begin());
        return;
    }
    worker.busy = false;
    if (config_.draw_themselves && !worker.down) assign(worker, deal(static_cast<WorkerId>(&worker - peers_.data())));
}

std::vector<Server::Dealt> Server::outstanding(const Peer& worker) const {
    std::vector<Dealt> out;
    if (!worker.busy) return out;
    if (!earlier_.empty()) out = earlier_[static_cast<std::size_t>(&worker - peers_.data())];
    out.push_back({worker.batch, worker.version});
    return out;
}

void Server::on(Time now, const PeerDown& event, Actions& actions) {
    auto& lost = peer(event.peer);
    if (finished_) return;
    if (lost.down) {  // again, before the word that it was back had its turn
        const auto back = [&](const Work& work) {
            return work.from == event.peer && std::holds_alternative<PeerBack>(work.message);
        };
        inbox_.erase(std::remove_if(inbox_.begin() + static_cast<std::ptrdiff_t>(inbox_head_), inbox_.end(), back),
                     inbox_.end());
        return;
    }
    lost.down = true;
    ++down_;
    lost.since_ns = now;
    lost.dealt = event.begun;
    lost.granted = lost.dealt_ahead = false;
    hold(event.peer).asked_ns = -1;
    std::erase_if(held_, [&](const Work& work) { return work.from == event.peer; });
    // At once, so that a checkpoint finds its batches among those that are still to be dealt.
    for (const Dealt& it : outstanding(lost)) dealer_.give_back(it.batch);
    lost.busy = false;
    if (!earlier_.empty()) earlier(lost).clear();
    while (again_.any(event.peer - 1)) dealer_.give_back(again_.take(event.peer - 1));
    take_in(now, event.peer, {}, event, actions);
    if (pause_ == Pause::draining) try_evaluate(now, actions);
    if (stopping_) try_finish(now, actions);
}

void Server::on(Time now, const PeerBack& event, Actions& actions) {
    if (finished_) return;
    take_in(now, event.peer, {}, event, actions);
    if (stopping_) try_finish(now, actions);
}

// A barrier is a promise about all workers, and what is left of its round is not one: the run ends.
void Server::handle(Time now, RoleId from, Time, const Slice&, const PeerDown&, Actions& actions) {
    if (stopping_) return;
    if (traits_.rounds) {
        finish_.worker = from - 1;
        return begin_stop(now, Status::peer_lost, actions);
    }
    wake_idle(now, actions);  // before an update that the loss completes, which takes the weights away
    if (!peer(from).idle) on_lost(policy_, from - 1, orders_);
    if (std::exchange(orders_.fire, false) && !round_.empty()) return fire(now, actions);
    carry_out(now, now, actions);
}

void Server::handle(Time now, RoleId from, Time, const Slice&, const PeerBack&, Actions& actions) {
    auto& worker = peer(from);
    if (!worker.down) return;
    worker.down = worker.idle = false;
    --down_;
    worker.replies = worker.pushes = 0;
    worker.unread = 0;  // it has no weights of its own any more
    worker.since_ns = hold(from).done_ns = now;
    if (stopping_) {
        ++sends_under_way_;
        actions.send<Stop>(next_id(), from, Channel::control, {}, worker.replies);
        return;
    }
    on_back(policy_, from - 1);
    restart(now, from, actions);
    carry_out(now, now, actions);
}

void Server::restart(Time now, RoleId to, Actions& actions) {
    auto& worker = peer(to);
    // Before the first word to all it is told with the others.
    if (!begun_ || on_ready(policy_, to - 1) == Ready::hold) {
        auto& held_back = hold(to);
        held_back.asked_ns = held_back.since_ns = now;
        held_back.have = -1;
    } else if (pause_ != Pause::none) {
        worker.granted = true;
        held_.push_back({to, now, {}, Inquiry{-1}});
    } else {
        deal_to(to, worker, true, 0, 0, actions);
    }
}

void Server::wake_idle(Time now, Actions& actions) {
    for (RoleId role = 1; role <= config_.lambda && !dealer_.exhausted(); ++role) {
        auto& worker = peer(role);
        if (!worker.idle || worker.down) continue;
        worker.idle = false;
        on_back(policy_, role - 1);
        restart(now, role, actions);
    }
}

}  // namespace rubato
