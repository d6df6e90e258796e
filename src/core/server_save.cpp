// Checkpoints: when the state of the run is saved, and what it is.
#include "core/server.hpp"

#include <cmath>

namespace rubato {

double Server::progress(Time now) const {
    if (config_.checkpoint.every_epochs) return epoch();
    if (config_.checkpoint.every_updates) return static_cast<double>(version_);
    return static_cast<double>(now) * 1e-9;
}

double Server::next_save(Time now) const {
    const auto& spec = config_.checkpoint;
    if (!spec.any()) return 0;
    const double every = spec.every_epochs    ? *spec.every_epochs
                         : spec.every_updates ? static_cast<double>(*spec.every_updates)
                                              : *spec.every_s;
    const double done = progress(now);
    const double next = (std::floor(done / every) + 1) * every;
    return next > done ? next : next + every;  // rounding
}

// One at a time: where the one before is not yet written, this one waits for the next update.
void Server::save_if_due(Time now, Actions& actions) {
    if (stopping_ || !config_.checkpoint.any() || save_id_ != 0) return;
    if (!interrupted_ && progress(now) < next_save_) return;
    next_save_ = next_save(now);
    save(now, actions);
}

void Server::save(Time now, Actions& actions) {
    if (save_id_ != 0) return;
    save_id_ = next_id();
    saved_ = state(now);
    saved_version_ = version_;
    actions.add<Save>(save_id_, weights_, version_, static_cast<std::int64_t>(actions.gradients.size()));
}

void Server::on(Time now, const Saved& event, Actions& actions) {
    if (event.id != save_id_) return;
    save_id_ = 0;
    saved_.reset();
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
