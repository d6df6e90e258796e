// Workers of gossip that crash and come back: gossip_faults.cpp says what the monitor does.
#include "core/averaging/gossip_worker.hpp"

#include <algorithm>
#include <utility>

namespace rubato {

std::vector<WorkerId> GossipWorker::peers() const {
    const std::vector<WorkerId>& absent = among_.members().absent();
    std::vector<WorkerId> out;
    for (WorkerId worker = 0; worker < config_.data.lambda; ++worker)
        if (own_batch(config_.data, worker, 0).count > 0 && !std::binary_search(absent.begin(), absent.end(), worker))
            out.push_back(worker);
    return out;
}

void GossipWorker::on_membership(Time now, const Membership& change, Actions& actions) {
    const Among::News news = among_.on(change);
    if (news == Among::News::none) return;
    if (news == Among::News::gone) return take_held(now, actions);
    workers_ = peers();
    if (news == Among::News::changed && said_ && change.round == mean_) {
        renews_ = true;
        try_renew(now, actions);
    } else if (!reduce_.begun()) {
        reset_reduce(actions);
    }
    take_held(now, actions);
}

// Its model is copied once more: what it has done meanwhile counts, too.
void GossipWorker::try_renew(Time now, Actions& actions) {
    if (!renews_ || share_ != 0 || reduce_.mixing()) return;
    renews_ = false;
    reset_reduce(actions);
    since_handed_in_ += said_->steps;
    --version_;
    exchange_ = Exchanged{};
    exchange_->asked_ns = said_->asked_ns;
    said_.reset();
    take_held(now, actions);
    if (phase_ == Phase::resting) at_boundary(now, actions);
}

void GossipWorker::reset_reduce(Actions& actions) {
    reduce_.end(actions);
    reduce_ = among_.reduce(true);
}

void GossipWorker::take_held(Time now, Actions& actions) {
    among_.take_held([&](const Delivered& event) { on(now, event, actions); });
}

void GossipWorker::on_model(Time now, const Delivered& event, const Model& model, Actions& actions) {
    weights_ = event.payload.buffer;
    version_ = model.version;
    book(now);
    phase_ = Phase::resting;
    at_boundary(now, actions);
}

void GossipWorker::on(Time now, const Crashed&, Actions& actions) {
    book(now);
    lose(phase_ == Phase::computing, actions);
    reduce_.crash(actions);
    for (Handed& it : handed_) let_go(it.model.buffer, actions);
    let_go(sharing_, actions);
    handed_.clear();
    among_.crash(actions);
    workers_ = peers();
    reduce_ = among_.reduce(true);
    weight_ = 0;
    waits_ = has_data_;
    came_ = since_handed_over_ = since_handed_in_ = mean_ = 0;
    expected_ = -1;
    exchange_.reset();
    said_.reset();
    share_ = hand_over_ = mixing_ = 0;
    renews_ = last_ = left_ = said_bye_ = false;
    phase_ = Phase::down;
}

void GossipWorker::on(Time now, const Restarted&, Actions&) {
    resume(now);
    phase_ = Phase::waiting;
}

}  // namespace rubato
