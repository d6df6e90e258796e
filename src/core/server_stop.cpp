// The end of a run.
#include "core/server.hpp"

#include <utility>

namespace rubato {

void Server::diverge(WorkerId worker, std::int64_t worker_seq, Version version) {
    if (diverged_) return;
    diverged_ = true;
    finish_ = Finish{Status::diverged, worker, worker_seq, version};
}

// Epochs end when everything that they hold has been handed out and has come back; gradients and samples count when
// they are accepted, updates when they are applied.
void Server::check_stop(Time now, Actions& actions) {
    if (stopping_) return;
    if (stop_at_ >= 0 && version_ >= stop_at_) return begin_stop(now, Status::finished, actions);
    if (diverged_ && config_.stop_on_divergence) return begin_stop(now, Status::diverged, actions);
    if (config_.stop_gradients && accepted_ >= *config_.stop_gradients)
        return begin_stop(now, Status::finished, actions);
    if (config_.stop_updates && version_ >= *config_.stop_updates) return begin_stop(now, Status::finished, actions);
    if (config_.stop_samples && accepted_samples_ >= *config_.stop_samples)
        return begin_stop(now, Status::finished, actions);
}

void Server::begin_stop(Time, Status status, Actions& actions) {
    stopping_ = true;
    status_ = status;
    pause_ = Pause::none;  // the final evaluation takes the place of one that was waited for
    held_.clear();
    if (!branches_.empty()) return stop_below(actions);
    if (config_.shards.any() && config_.shard == 0) stop_others(actions);
    for (RoleId role = 1; role <= config_.lambda; ++role) {
        if (peer(role).down) continue;
        ++sends_under_way_;
        actions.send<Stop>(next_id(), role, Channel::control, {}, peer(role).replies);
    }
}

void Server::leave_over(const GradientRow& row, Actions& actions) const {
    GradientRow left = row;
    left.outcome = Outcome::leftover;
    state(left, actions);
}

void Server::state_cancelled(WorkerId worker, const Push& begun, Actions& actions) const {
    GradientRow row = unapplied_row(worker, begun, Outcome::cancelled);
    row.end_ns = row.push_ns = -1;
    state(row, actions);
}

void Server::on_bye(Time now, RoleId from, const Bye& bye, Actions& actions) {
    auto& worker = peer(from);
    worker.pushes_expected = bye.pushes;
    ++byes_;
    if (bye.cancelled) state_cancelled(from - 1, bye.gradient, actions);
    try_finish(now, actions);
}

void Server::try_finish(Time now, Actions& actions) {
    if (finished_ || busy_ || inbox_head_ < inbox_.size()) return;
    if (!round_.empty()) {  // taken in, but never enough for an update
        for (const auto& it : round_) {
            leave_over(it.row, actions);
            if (it.gradient != no_buffer) actions.add<Release>(it.gradient);
        }
        round_.clear();
        if (accumulator_ != no_buffer) actions.add<Release>(accumulator_);
        accumulator_ = no_buffer;
    }
    if (config_.learns && config_.evaluate_at_end && evaluated_ != version_) evaluate(now, actions);
    if (config_.shards.any() && config_.shard == 0 && config_.hands_over && !gathers_last_) gather(0, actions);
    if (!gatherings_.empty() || (config_.shard > 0 && (stop_at_ < 0 || (config_.hands_over && !handed_over_)))) return;
    if (byes_ + down_ < config_.lambda || sends_under_way_ > 0 || !evaluations_.empty() || saving_.under_way()) return;
    for (const auto& it : peers_)
        if (!it.down && it.pushes < it.pushes_expected) return;
    finished_ = true;
    finish_.status = diverged_ ? Status::diverged : status_;
    actions.add<Release>(weights_);
    weights_ = no_buffer;
    if (whole_ != no_buffer) actions.add<Release>(std::exchange(whole_, no_buffer));
    actions.list.emplace_back(finish_);
}

// Of several batches the last one was dealt ahead, and nobody knows of it as begun.
void Server::on(Time, const PeerLost& event, Actions& actions) {
    const auto& lost = peer(event.peer);
    auto begun = outstanding(lost);
    std::int64_t number = first_seq(lost);
    if (begun.size() > 1) {
        begun.pop_back();
        number -= static_cast<std::int64_t>(begun.size());
    }
    for (const Dealt& it : begun) {
        Push push;
        push.read_version = it.version;
        push.worker_seq = number++;
        push.count = gradients_in(it.batch, config_.batch_size);
        push.batch = it.batch;
        GradientRow row = unapplied_row(event.peer - 1, push, Outcome::cancelled);
        row.pull_ns = row.begin_ns = row.end_ns = row.push_ns = -1;
        state(row, actions);
    }
}

// Nothing comes any more, not even the completion of what is under way.
void Server::on(Time, const Abandoned& event, Actions& actions) {
    for (const auto* gradients : {&applying_, &round_})
        for (const auto& it : *gradients) leave_over(it.row, actions);
    for (const auto& branch : branches_)
        for (const Push& record : branch.records)
            actions.gradients.push_back(unapplied_row(record.worker, record, Outcome::leftover));
    for (std::size_t i = inbox_head_; i < inbox_.size(); ++i) {
        const WorkerId worker = inbox_[i].from - 1;
        if (const auto* push = std::get_if<Push>(&inbox_[i].message))
            leave_over(unapplied_row(worker, *push, Outcome::leftover), actions);
        if (const auto* gave_up = std::get_if<GaveUp>(&inbox_[i].message))
            state_cancelled(worker, gave_up->gradient, actions);
    }
    finished_ = true;
    finish_ = Finish{event.status};
    actions.list.emplace_back(finish_);
}

std::string Server::describe() const {
    return (config_.shards.any() ? "shard " + std::to_string(config_.shard) : "server") + " of " +
           std::string(name(policy_)) + " at version " + std::to_string(version_) + ": " + std::to_string(accepted_) +
           " gradients taken in, " + std::to_string(round_.size()) + " wait for an update, " +
           std::to_string(inbox_.size() - inbox_head_) + " messages wait; " + (finished_ ? "finished" : waiting());
}

}  // namespace rubato
