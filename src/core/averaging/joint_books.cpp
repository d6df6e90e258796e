#include "core/averaging/joint_books.hpp"

#include "core/learning_rate.hpp"
#include "core/target.hpp"
#include "core/vector_clock.hpp"

#include <algorithm>
#include <cmath>

namespace rubato {

double JointBooks::rate() const {
    return scheduled_rate(config_.optimizer, epoch());
}

std::int32_t JointBooks::steps_left(std::int32_t most, int workers) const {
    std::int64_t steps = most;
    const auto at_most = [&](std::int64_t left, std::int64_t a_step) {
        steps = std::min(steps, (left + a_step - 1) / a_step);
    };
    if (config_.stop_gradients) at_most(*config_.stop_gradients - accepted_ - ahead_, workers);
    if (config_.stop_samples)
        at_most(*config_.stop_samples - samples_ - ahead_samples_, std::int64_t{workers} * config_.batch_size);
    return static_cast<std::int32_t>(std::max<std::int64_t>(1, steps));
}

void JointBooks::diverge(WorkerId worker, std::int64_t worker_seq, Version version) {
    if (diverged_) return;
    diverged_ = true;
    finish_ = Finish{Status::diverged, worker, worker_seq, version};
}

void JointBooks::count(const GradientRow& row) {
    ahead_ += row.count;
    ahead_samples_ += row.samples;
}

void JointBooks::look_at(const GradientRow& row) {
    if (config_.learns && !std::isfinite(row.loss)) diverge(row.worker, row.worker_seq, row.read_version);
}

void JointBooks::apply(Time now, std::vector<GradientRow>& rows, double rate, Actions& actions) {
    UpdateRow update;
    VectorClock clock;
    for (GradientRow& row : rows) {
        row.seq = accepted_;
        row.apply_version = version_;
        row.applied_ns = now;
        row.outcome = Outcome::applied;
        clock.add(row.read_version, row.count);
        accepted_ += row.count;
        samples_ += row.samples;
        ahead_ -= std::min<std::int64_t>(ahead_, row.count);
        ahead_samples_ -= std::min<std::int64_t>(ahead_samples_, row.samples);
        update.contributors += row.count;
        update.samples += row.samples;
        loss_sum_ += row.loss;
        ++loss_count_;
        actions.gradients.push_back(row);
    }
    update.time_ns = now;
    update.mean_staleness = rows.empty() ? 0 : clock.mean_staleness(version_);
    update.version = ++version_;
    update.epoch = epochs(samples_);
    update.learning_rate = update.effective_learning_rate = rate;
    actions.updates.push_back(update);
    rows.clear();
}

void JointBooks::leave_over(const std::vector<GradientRow>& rows, Actions& actions) {
    for (GradientRow row : rows) {
        row.outcome = Outcome::leftover;
        actions.gradients.push_back(row);
    }
}

bool JointBooks::evaluation_due() {
    if (!config_.evaluate_every_epochs || epoch() < next_evaluation_) return false;
    while (next_evaluation_ <= epoch()) next_evaluation_ += *config_.evaluate_every_epochs;
    return true;
}

void JointBooks::evaluate(Time now, ActionId id, BufferId weights, Actions& actions) {
    EvalRow row;
    row.time_ns = now;
    row.version = evaluated_ = version_;
    row.epoch = epochs(samples_);
    row.samples = samples_;
    if (loss_count_ > 0) row.train_loss = loss_sum_ / static_cast<double>(loss_count_);
    loss_sum_ = 0;
    loss_count_ = 0;
    evaluations_.push_back({id, row});
    actions.add<Evaluate>(id, weights, version_);
}

std::optional<Status> JointBooks::on(const Evaluated& event, Actions& actions) {
    const auto row = end_evaluation(evaluations_, event, actions);
    if (!row) return std::nullopt;
    if (loss_diverged(*row)) diverge(-1, -1, row->version);
    if (config_.target && reaches(*row, *config_.target)) return Status::finished;
    return end();
}

std::optional<Status> JointBooks::end() const {
    if (diverged_ && config_.stop_on_divergence) return Status::diverged;
    const bool over = (config_.stop_gradients && accepted_ + ahead_ >= *config_.stop_gradients) ||
                      (config_.stop_updates && version_ >= *config_.stop_updates) ||
                      (config_.stop_samples && samples_ + ahead_samples_ >= *config_.stop_samples);
    return over ? std::optional(Status::finished) : std::nullopt;
}

Finish JointBooks::finish(Status status) const {
    Finish finish = finish_;
    finish.status = diverged_ ? Status::diverged : status;
    return finish;
}

}  // namespace rubato
