// Workers of averaging in phases that crash and come back: phase_driver_faults.cpp says what the others do.
#include "core/averaging/phase_worker.hpp"

#include <algorithm>
#include <utility>

namespace rubato {

void PhaseWorker::reset_reduce(Actions& actions) {
    reduce_.end(actions);
    reduce_ = among_.reduce(true);
}

void PhaseWorker::on_membership(Time now, const Membership& change, Actions& actions) {
    switch (among_.on(change)) {
        case Among::News::none: return;
        case Among::News::gone: return take_held(now, actions);
        case Among::News::joined: reset_reduce(actions); return take_held(now, actions);
        case Among::News::changed: break;
    }
    if (!change.there) passing_.lose(change.worker + 1, actions);
    go_on_passing(actions);
    if (change.over) {
        given_up_ = true;
        return give_up(now, actions);
    }
    if (contributed_ && contributed_->number == change.round)
        renews_ = true;
    else if (!reduce_.begun())
        reset_reduce(actions);
    try_renew(now, actions);
    take_held(now, actions);
    if (phase_ == Phase::resting && exchange_) at_boundary(now, actions);
}

void PhaseWorker::take_held(Time now, Actions& actions) {
    among_.take_held([&](const Delivered& event) { on(now, event, actions); });
}

// Its part is copied anew at the end of a step: what it has done meanwhile counts, too.
void PhaseWorker::try_renew(Time now, Actions& actions) {
    if (!renews_ || share_ != 0 || reduce_.mixing() || phase_ == Phase::taking) return;
    renews_ = false;
    reset_reduce(actions);
    exchange_ = std::exchange(contributed_, {});
    const auto shard = static_cast<std::size_t>(exchange_->shard);
    tau_[shard] += exchanged_.steps;
    pulled_[shard] += exchanged_.pulls;
    const Time asked_ns = exchanged_.asked_ns;
    exchanged_ = {};
    exchanged_.shard = exchange_->shard;
    exchanged_.asked_ns = asked_ns;
    take_held(now, actions);
}

// Steps, copies, sums and messages under way are waited for; nobody waits for more of them.
void PhaseWorker::give_up(Time, Actions& actions) {
    renews_ = false;
    exchange_.reset();
    passing_.end(actions);
    among_.drop_held(actions);
    if (phase_ != Phase::resting || reduce_.mixing() || share_ != 0 || passing_.sending() || passing_.gathering())
        return;
    reduce_.end(actions);
    for (Sent& it : sent_) let_go(it.payload.buffer, actions);
    sent_.clear();
    try_leave(actions);
}

void PhaseWorker::on(Time now, const Crashed&, Actions& actions) {
    book(now);
    lose(phase_ == Phase::computing, actions);
    reduce_.crash(actions);
    for (Sent& it : sent_) let_go(it.payload.buffer, actions);
    for (BufferId* buffer : {&joint_, &gradient_, &sharing_}) let_go(*buffer, actions);
    sent_.clear();
    among_.crash(actions);
    passing_.drop(actions);
    passing_ = Passing(config_.worker + 1, config_.spread, true);
    reduce_ = among_.reduce(true);
    std::fill(tau_.begin(), tau_.end(), 0);
    std::fill(pulled_.begin(), pulled_.end(), 0);
    exchange_.reset();
    contributed_.reset();
    exchanges_ = broadcasts_ = 0;
    exchanges_expected_ = broadcasts_expected_ = -1;
    share_ = mixing_ = 0;
    renews_ = given_up_ = false;
    phase_ = Phase::down;
}

void PhaseWorker::on(Time now, const Restarted&, Actions&) {
    resume(now);
    phase_ = Phase::waiting;
}

}  // namespace rubato
