// Checkpoints: when the state of the run is saved, and what it is.
#include "core/server.hpp"

namespace rubato {

Progress Server::progress(Time now) const {
    return {now, version_, epoch()};
}

void Server::save_if_due(Time now, Actions& actions) {
    if (stopping_ || !saving_.any()) return;
    if (interrupted_ || saving_.due(progress(now))) save(now, actions);
}

void Server::save(Time now, Actions& actions) {
    if (saving_.under_way()) return;
    const ActionId id = next_id();
    saving_.begin(progress(now), id, state(now), weights_, no_buffer, actions);
}

void Server::on(Time now, const Saved& event, Actions& actions) {
    saving_.on(event);
    if (stopping_) try_finish(now, actions);
}

// Gradients of a round that is not complete count as if they had never come: only a signal finds one.
ServerState Server::state(Time now) const {
    ServerState out;
    out.now_ns = now;
    out.version = version_;
    out.last_id = last_id_;
    out.accepted = accepted_;
    for (const auto& it : round_) out.accepted -= it.row.count;
    out.samples = applied_samples_;
    out.mean_staleness = last_mean_staleness_;
    out.staleness_trend = staleness_trend_;
    out.loss_sum = round_.empty() ? loss_sum_ : boundary_.loss_sum;
    out.loss_count = round_.empty() ? loss_count_ : boundary_.loss_count;
    out.next_evaluation = next_evaluation_;
    out.evaluated = evaluated_;
    out.evaluations = evaluations_;
    out.pause = static_cast<std::int32_t>(pause_);
    out.diverged = diverged_;
    out.diverged_version = finish_.version;
    out.diverged_worker = finish_.worker;
    out.diverged_seq = finish_.worker_seq;
    out.policy = round_.empty() ? policy_ : boundary_.policy;
    out.dealer = dealer_.state();
    // Of one worker: what was taken in came before what waits, and that before what it computes.
    std::vector<std::vector<Batch>> open(peers_.size());
    for (const auto& it : round_) open[static_cast<std::size_t>(it.row.worker)].push_back(it.row.batch);
    for (std::size_t i = inbox_head_; i < inbox_.size(); ++i) {
        auto& its = open[static_cast<std::size_t>(inbox_[i].from - 1)];
        if (const auto* push = std::get_if<Push>(&inbox_[i].message)) its.push_back(push->batch);
        if (const auto* gave_up = std::get_if<GaveUp>(&inbox_[i].message)) its.push_back(gave_up->gradient.batch);
    }
    for (std::size_t worker = 0; worker < peers_.size(); ++worker) {
        const auto& it = peers_[worker];
        for (const Dealt& dealt : outstanding(it)) open[worker].push_back(dealt.batch);
        out.begun.push_back(it.dealt);
        for (const Batch& batch : open[worker]) {
            out.again.push_back({static_cast<WorkerId>(worker), batch});
            out.begun.back() -= gradients_in(batch, config_.batch_size);
        }
    }
    // What a resumed run has not yet dealt again is still to be.
    again_.append_to(out.again);
    return out;
}

}  // namespace rubato
