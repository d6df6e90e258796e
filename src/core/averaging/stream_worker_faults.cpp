// Workers of streaming DiLoCo that crash and come back: average_faults.cpp says what the driver does.
#include "core/averaging/stream_worker.hpp"

#include <utility>

namespace rubato {

void StreamWorker::on_membership(Time now, const Membership& change, Actions& actions) {
    switch (among_.on(change)) {
        case Among::News::none: return;
        case Among::News::gone: return take_held(now, actions);
        case Among::News::joined: reset_reduce(actions); return take_held(now, actions);
        case Among::News::changed: break;
    }
    if (!change.there) {
        broadcast_.lose(change.worker + 1);
        go_on_passing(actions);
        drop(actions);
    }
    if (change.over) {
        given_up_ = true;
        return give_up(actions);
    }
    if (handed_on_ > merged_ && merged_ >= 0 && change.round == handed_on_ - 1) {
        renews_ = true;
        try_renew(now, actions);
    } else if (!reduce_.begun()) {
        reset_reduce(actions);
    }
    take_held(now, actions);
    try_leave(actions);
}

// What it has handed on is handed on as it was: others have made as many steps of theirs.
void StreamWorker::try_renew(Time now, Actions& actions) {
    if (!renews_ || share_ != 0 || reduce_.mixing()) return;
    renews_ = false;
    reset_reduce(actions);
    reduce_.begin({kept_, contributed_}, true);
    take_held(now, actions);
    go_on_reducing(now, actions);
}

void StreamWorker::reset_reduce(Actions& actions) {
    reduce_.end(actions);
    reduce_ = among_.reduce(true);
}

void StreamWorker::take_held(Time now, Actions& actions) {
    among_.take_held([&](const Delivered& event) { on(now, event, actions); });
}

void StreamWorker::on_whole(Time now, const Delivered& event, const Model& model, Actions& actions) {
    weights_ = event.payload.buffer;
    taken_ = config_.every * model.version;
    goes_on_from(model, since_ns_);
    handed_on_ = merged_;
    if (model.number == Model::whole_alone) version_ = model.version;
    for (Sent& it : sent_) it.merged = it.merged || it.model.version <= merged_;
    drop(actions);
    if (stopping_) return rest(now, actions);
    go_on_with(now, event, model, actions);
}

// Steps, copies, sums and messages under way are waited for; nobody waits for more of them.
void StreamWorker::give_up(Actions& actions) {
    renews_ = false;
    broadcast_.end();
    among_.drop_held(actions);
    if (phase_ != Phase::resting || reduce_.mixing() || share_ != 0 || !broadcast_.done()) return;
    reduce_.end(actions);
    for (Sent& it : sent_) let_go(it.payload.buffer, actions);
    sent_.clear();
    passed_ = 0;
    let_go(kept_.buffer, actions);
    try_leave(actions);
}

void StreamWorker::on(Time now, const Crashed&, Actions& actions) {
    book(now);
    lose(phase_ == Phase::computing, actions);
    reduce_.crash(actions);
    for (Sent& it : sent_) let_go(it.payload.buffer, actions);
    for (BufferId* buffer : {&kept_.buffer, &sharing_}) let_go(*buffer, actions);
    sent_.clear();
    passed_ = 0;
    among_.crash(actions);
    broadcast_ = {};
    reduce_ = among_.reduce(true);
    handed_on_ = 0;
    merged_ = version_ = stop_version_ = -1;
    share_ = mixing_ = 0;
    renews_ = given_up_ = false;
    phase_ = Phase::down;
}

void StreamWorker::on(Time now, const Restarted&, Actions&) {
    resume(now);
    phase_ = Phase::waiting;
}

}  // namespace rubato
