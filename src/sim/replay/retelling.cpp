#include "sim/replay/retelling.hpp"

#include "sim/replay/same_schedule.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::sim {

Retelling::Retelling(std::vector<Role> roles, bool stop_on_divergence, const MessageSizes& sizes,
                     trace::Recorder& recorder, const trace::Checkpoint* resumed)
    : roles_(std::move(roles)),
      finished_(roles_.size()),
      lost_(roles_.size()),
      stop_on_divergence_(stop_on_divergence),
      sizes_(sizes),
      recorder_(recorder) {
    if (resumed == nullptr) return;
    const auto& totals = resumed->head.totals;
    report_.messages = totals.messages;
    report_.control_messages = totals.control_messages;
    report_.bytes = totals.bytes;
    server_ = totals.server;
    const ServerState& state = resumed->head.roles.server;
    counted_samples_ = state.samples;
    loss_sum_ = state.loss_sum;
    loss_count_ = state.loss_count;
}

void Retelling::on_gradient(RoleId role, const Compute& compute, const GradientReady&, double loss) {
    losses_[{role - 1, compute.worker_seq}] = loss;
}

void Retelling::on_evaluated(RoleId, const Evaluate& evaluate, const Evaluated&, const Metrics& metrics) {
    figures_[evaluate.version] = metrics;
    const auto& loss = metrics.test_loss ? metrics.test_loss : metrics.valid_loss;
    if (loss && !std::isfinite(*loss)) diverge(Finish{Status::diverged, -1, -1, evaluate.version});
}

double Retelling::loss_of(GradientKey key) const {
    const auto it = losses_.find(key);
    return it == losses_.end() ? 0 : it->second;
}

void Retelling::diverge(const Finish& finish) {
    if (diverged()) return;
    report_.status = Status::diverged;
    report_.detail = ending_text(finish);
}

/// What the version owner learns from an event, before it is told.
void Retelling::look_at(RoleId role, const Event& event) {
    if (role != 0 || stopping_) return;
    const auto* delivered = std::get_if<Delivered>(&event);
    const auto* push = delivered ? std::get_if<Push>(&delivered->message) : nullptr;
    if (push == nullptr) return;
    const WorkerId worker = delivered->from - 1;
    const double loss = loss_of({worker, push->worker_seq});
    arrived_.push_back({{worker, push->worker_seq}, push->batch.count, loss});
    if (!std::isfinite(loss)) diverge(Finish{Status::diverged, worker, push->worker_seq, push->read_version});
}

const Actions* Retelling::on_step(Time now, RoleId role, const Event& event, const Actions& recorded) {
    look_at(role, event);
    now_ = std::max(now_, now);
    actions_.clear();
    step(roles_[static_cast<std::size_t>(role)], now, event, actions_);
    require_same_schedule(now, role, recorded, actions_);
    record(now, role, event);
    return diverged() && stop_on_divergence_ ? nullptr : &actions_;
}

void Retelling::record(Time now, RoleId role, const Event& event) {
    count(now, role, event);
    rewrite();
    recorder_.step(now, role, event, actions_);
}

// Losses and figures of the new weights take the place of the recorded ones.
void Retelling::rewrite() {
    for (auto& row : actions_.gradients) {
        const GradientKey key{row.worker, row.worker_seq};
        if (const auto it = losses_.find(key); it != losses_.end()) {
            row.loss = it->second;
            losses_.erase(it);
        }
        // What the policy refused is in no sum.
        if (row.outcome == rubato::Outcome::dropped)
            std::erase_if(arrived_, [&](const Arrived& it) { return it.key == key; });
    }
    for (auto& row : actions_.evals) {
        if (const auto it = figures_.find(row.version); it != figures_.end()) {
            row.metrics = it->second;
            figures_.erase(it);
        }
        if (const auto mean = train_loss(row.samples)) row.train_loss = mean;
    }
}

/// Mean loss of the gradients that were taken in since the evaluation before, in the order in which they came; the
/// version owner takes them in as they come. samples: taken in so far.
std::optional<double> Retelling::train_loss(std::int64_t samples) {
    if (samples < counted_samples_) return std::nullopt;  // asked for before the log begins
    double sum = std::exchange(loss_sum_, 0);
    std::int64_t number = std::exchange(loss_count_, 0);
    while (counted_samples_ < samples && !arrived_.empty()) {
        sum += arrived_.front().loss;
        ++number;
        counted_samples_ += arrived_.front().samples;
        arrived_.pop_front();
    }
    return number > 0 ? std::optional(sum / static_cast<double>(number)) : std::nullopt;
}

// Traffic, and what the version owner's apply lane was busy with: from the action to its completion.
void Retelling::count(Time now, RoleId role, const Event& event) {
    const auto completed = [&](ActionId id, Time& busy) {
        const auto it = apply_since_.find(id);
        if (it == apply_since_.end()) return;
        busy += now - it->second;
        apply_since_.erase(it);
    };
    if (role == 0) {
        if (const auto* lost = std::get_if<PeerLost>(&event)) lost_.at(static_cast<std::size_t>(lost->peer)) = true;
        if (const auto* folded = std::get_if<Folded>(&event)) completed(folded->id, server_.push_ns);
        if (const auto* applied = std::get_if<Applied>(&event)) completed(applied->id, server_.update_ns);
    }
    const bool abandoned = std::holds_alternative<Abandoned>(event);
    for (const auto& action : actions_.list) {
        if (std::holds_alternative<Finish>(action)) finished_[static_cast<std::size_t>(role)] = true;
        if (abandoned) continue;
        if (const auto* send = std::get_if<Send>(&action)) {
            stopping_ = stopping_ || std::holds_alternative<Stop>(send->message);
            if (send->payload.buffer == no_buffer) {
                ++report_.control_messages;
                report_.bytes += sizes_.control;
                continue;
            }
            const bool pushes = send->channel == Channel::gradient;
            ++report_.messages;
            report_.bytes += pushes ? sizes_.push : sizes_.pull;
            (pushes ? server_.bytes_in : server_.bytes_out) += pushes ? sizes_.push : sizes_.pull;
            if (!pushes) ++server_.replies;
        } else if (const auto* fold = std::get_if<Fold>(&action)) {
            ++server_.pushes;
            apply_since_[fold->id] = now;
        } else if (const auto* update = std::get_if<Update>(&action)) {
            server_.updates += update->step_count;
            apply_since_[update->id] = now;
        }
    }
    for (const auto& part : actions_.parts) server_.pushes += part.pushes;
}

void Retelling::close(const Recomputation& recomputation) {
    for (RoleId role = 0; role < static_cast<RoleId>(roles_.size()); ++role) {
        // What a lost role had begun is in the books of the version owner.
        if (finished_[static_cast<std::size_t>(role)] || lost_[static_cast<std::size_t>(role)]) continue;
        auto& its = roles_[static_cast<std::size_t>(role)];
        // What lies at its receiver is in the receiver's books.
        for (const ActionId id : recomputation.untaken(role)) {
            actions_.clear();
            step(its, now_, Taken{id, now_}, actions_);
        }
        // Real runs hear of their evaluations late; those that are there are told.
        for (const auto& [id, evaluating] : recomputation.evaluating(role)) {
            figures_[evaluating.action.version] = evaluating.metrics;
            const Event told = Evaluated{id, {}};
            actions_.clear();
            step(its, now_, told, actions_);
            actions_.list.clear();
            record(now_, role, told);
        }
        const Event event = Abandoned{report_.status};
        actions_.clear();
        step(its, now_, event, actions_);
        record(now_, role, event);
    }
    report_.end_ns = now_;
    report_.servers = {server_};
}

}  // namespace rubato::sim
