// Workers of averaging in phases that crash and come back: phase_driver_faults.cpp says what the others do.
#include "core/averaging/phase_worker.hpp"

#include <algorithm>
#include <utility>

namespace rubato {

void PhaseWorker::on_membership(Time now, const Membership& change, Actions& actions) {
    if (change.number < 0) return lacking_.push_back(change.worker);
    if (change.there && change.worker == config_.worker) return join(now, change, actions);
    if (change.number <= members_.number()) return;
    members_.change(change.worker, change.there);
    if (!change.there) passing_.lose(change.worker + 1, actions);
    go_on_passing(actions);
    if (change.over) {
        given_up_ = true;
        return give_up(now, actions);
    }
    if (contributed_ && contributed_->number == change.round) {
        renews_ = true;
    } else if (!reduce_.begun()) {
        reduce_.end(actions);
        reduce_ = fresh_reduce();
    }
    try_renew(now, actions);
    take_held(now, actions);
    if (phase_ == Phase::resting && exchange_) at_boundary(now, actions);
}

void PhaseWorker::join(Time now, const Membership& change, Actions& actions) {
    members_.begin_from(change.number, std::exchange(lacking_, {}));
    joined_ = change.number;
    reduce_.end(actions);
    reduce_ = fresh_reduce();
    take_held(now, actions);
}

void PhaseWorker::take_held(Time now, Actions& actions) {
    for (const Delivered& event : std::exchange(held_, {})) on(now, event, actions);
}

// Its part is copied anew at the end of a step: what it has done meanwhile counts, too.
void PhaseWorker::try_renew(Time now, Actions& actions) {
    if (!renews_ || share_ != 0 || reduce_.mixing() || phase_ == Phase::taking) return;
    renews_ = false;
    reduce_.end(actions);
    reduce_ = fresh_reduce();
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
    for (Delivered& event : held_) let_go(event.payload.buffer, actions);
    held_.clear();
    if (phase_ != Phase::resting || reduce_.mixing() || share_ != 0 || passing_.sending() || passing_.gathering())
        return;
    reduce_.end(actions);
    for (Sent& it : sent_) let_go(it.payload.buffer, actions);
    sent_.clear();
    try_leave(actions);
}

void PhaseWorker::on(Time now, const Crashed&, Actions& actions) {
    book(now);
    steps_.crash(phase_ == Phase::computing || cancelled_, actions);
    reduce_.crash(actions);
    for (Delivered& event : held_) let_go(event.payload.buffer, actions);
    for (Sent& it : sent_) let_go(it.payload.buffer, actions);
    for (BufferId* buffer : {&weights_, &joint_, &gradient_, &sharing_}) let_go(*buffer, actions);
    held_.clear();
    sent_.clear();
    members_ = Members(config_.data.lambda);
    lacking_.clear();
    joined_ = outside;
    passing_.crash(actions);
    passing_ = Passing(config_.worker + 1, config_.spread, true);
    reduce_ = fresh_reduce();
    std::fill(tau_.begin(), tau_.end(), 0);
    std::fill(pulled_.begin(), pulled_.end(), 0);
    exchange_.reset();
    contributed_.reset();
    exchanges_ = broadcasts_ = 0;
    exchanges_expected_ = broadcasts_expected_ = -1;
    share_ = mixing_ = bye_ = 0;
    sends_under_way_ = 0;
    stopping_ = cancelled_ = renews_ = given_up_ = false;
    phase_ = Phase::down;
}

void PhaseWorker::on(Time now, const Restarted&, Actions&) {
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    phase_ = Phase::waiting;
    since_ns_ = now;
}

}  // namespace rubato
