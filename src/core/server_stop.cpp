// The server's evaluations and the end of a run.
#include "core/server.hpp"

#include <cmath>

namespace rubato {

void Server::evaluate(Time now, Actions& actions) {
    EvalRow row;
    row.time_ns = now;
    row.version = version_;
    row.epoch = epoch();
    row.samples = accepted_samples_;
    if (loss_count_ > 0) row.train_loss = loss_sum_ / static_cast<double>(loss_count_);
    loss_sum_ = 0;
    loss_count_ = 0;
    evaluated_ = version_;
    const auto id = next_id();
    evaluations_.emplace_back(id, row);
    actions.add<Evaluate>(id, weights_, version_);
}

void Server::on(Time now, const Evaluated& event, Actions& actions) {
    for (auto it = evaluations_.begin(); it != evaluations_.end(); ++it) {
        if (it->first != event.id) continue;
        EvalRow row = it->second;
        evaluations_.erase(it);
        row.metrics = event.metrics;
        actions.evals.push_back(row);
        const auto& loss = row.metrics.test_loss ? row.metrics.test_loss : row.metrics.valid_loss;
        if (loss && !std::isfinite(*loss)) diverge(-1, -1, row.version);
        if (!stopping_ && diverged_ && config_.stop_on_divergence) begin_stop(now, Status::diverged, actions);
        if (!stopping_ && target_reached(row)) begin_stop(now, Status::finished, actions);
        break;
    }
    if (stopping_) try_finish(now, actions);
}

bool Server::target_reached(const EvalRow& row) const {
    if (!config_.target) return false;
    const auto& metric = config_.target->metric;
    const auto& m = row.metrics;
    std::optional<double> value;
    if (metric == "valid_error") value = m.valid_error;
    if (metric == "valid_loss") value = m.valid_loss;
    if (metric == "test_error") value = m.test_error;
    if (metric == "test_loss") value = m.test_loss;
    if (metric == "train_loss") value = row.train_loss;
    if (metric == "gradient_norm") value = m.gradient_norm;
    if (metric == "suboptimality") value = m.suboptimality;
    return value && *value <= config_.target->at_most;
}

void Server::diverge(WorkerId worker, std::int64_t worker_seq, Version version) {
    if (diverged_) return;
    diverged_ = true;
    finish_ = Finish{Status::diverged, worker, worker_seq, version};
}

// Epochs end when everything that they hold has been handed out and has come back; gradients and samples count when
// they are accepted, updates when they are applied.
void Server::check_stop(Time now, Actions& actions) {
    if (stopping_) return;
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
    for (RoleId role = 1; role <= config_.lambda; ++role) {
        ++sends_under_way_;
        actions.send<Stop>(next_id(), role, Channel::control, {}, peer(role).replies);
    }
}

void Server::leave_over(const GradientRow& row, Actions& actions) {
    actions.gradients.push_back(row);
    actions.gradients.back().outcome = Outcome::leftover;
}

void Server::on_bye(Time now, RoleId from, const Bye& bye, Actions& actions) {
    auto& worker = peer(from);
    worker.pushes_expected = bye.pushes;
    ++byes_;
    if (bye.cancelled) {
        GradientRow row = unapplied_row(from - 1, bye.gradient, Outcome::cancelled);
        row.end_ns = row.push_ns = -1;
        actions.gradients.push_back(row);
    }
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
    if (byes_ < config_.lambda || sends_under_way_ > 0 || !evaluations_.empty()) return;
    for (const auto& it : peers_)
        if (it.pushes < it.pushes_expected) return;
    finished_ = true;
    finish_.status = diverged_ ? Status::diverged : status_;
    actions.add<Release>(weights_);
    weights_ = no_buffer;
    actions.list.emplace_back(finish_);
}

// Nothing comes any more, not even the completion of what is under way.
void Server::on(Time, const Abandoned& event, Actions& actions) {
    for (const auto* gradients : {&applying_, &round_})
        for (const auto& it : *gradients) leave_over(it.row, actions);
    for (std::size_t i = inbox_head_; i < inbox_.size(); ++i)
        if (const auto* push = std::get_if<Push>(&inbox_[i].message))
            actions.gradients.push_back(unapplied_row(inbox_[i].from - 1, *push, Outcome::leftover));
    finished_ = true;
    finish_ = Finish{event.status};
    actions.list.emplace_back(finish_);
}

std::string Server::describe() const {
    return "server of " + std::string(name(policy_)) + " at version " + std::to_string(version_) + ": " +
           std::to_string(accepted_) + " gradients taken in, " + std::to_string(round_.size()) +
           " wait for an update, " + std::to_string(inbox_.size() - inbox_head_) + " messages wait; " +
           (finished_ ? "finished" : waiting());
}

}  // namespace rubato
