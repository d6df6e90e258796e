#include "core/averaging/joint_books.hpp"

#include "core/learning_rate.hpp"
#include "core/target.hpp"
#include "core/vector_clock.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

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

void JointBooks::discount(const GradientRow& row) {
    ahead_ -= row.count;
    ahead_samples_ -= row.samples;
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
        auto& begun = begun_[static_cast<std::size_t>(row.worker)];
        begun = std::max(begun, row.worker_seq + row.count);
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

void JointBooks::lose(WorkerId worker, std::int64_t begun) {
    auto& it = begun_[static_cast<std::size_t>(worker)];
    it = std::max(it, begun);
}

void JointBooks::state_lost(WorkerId worker, Version version, std::int64_t told, const DealerConfig& data,
                            Actions& actions) const {
    Push begun;
    begun.read_version = version;
    begun.worker_seq = told + (begun_before_.empty() ? 0 : begun_before_[static_cast<std::size_t>(worker)]);
    begun.batch = own_batch(data, worker, begun.worker_seq);
    if (begun.batch.count == 0) return;
    GradientRow row = unapplied_row(worker, begun, Outcome::cancelled);
    row.pull_ns = row.begin_ns = row.end_ns = row.push_ns = -1;
    actions.gradients.push_back(row);
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

bool JointBooks::save_due(Time now, bool stopping) const {
    if (stopping) return false;
    if (interrupted_) return saving_.any() && !saving_.under_way() && saving_.news(version_);
    return saving_.due({now, version_, epoch()});
}

bool JointBooks::can_leave_out(const std::vector<GradientRow>& rows) const {
    return std::none_of(rows.begin(), rows.end(), [this](const GradientRow& row) {
        return row.worker_seq < begun_[static_cast<std::size_t>(row.worker)];
    });
}

ServerState JointBooks::state(Time now, ActionId last_id) const {
    ServerState out;
    out.now_ns = now;
    out.version = version_;
    out.last_id = last_id;
    out.accepted = accepted_;
    out.samples = samples_;
    out.loss_sum = loss_sum_;
    out.loss_count = loss_count_;
    out.next_evaluation = next_evaluation_;
    out.evaluated = evaluated_;
    out.evaluations = evaluations_;
    out.diverged = diverged_;
    out.diverged_version = finish_.version;
    out.diverged_worker = finish_.worker;
    out.diverged_seq = finish_.worker_seq;
    out.begun = begun_;
    return out;
}

void JointBooks::restore(const ServerState& state) {
    version_ = state.version;
    accepted_ = state.accepted;
    samples_ = state.samples;
    loss_sum_ = state.loss_sum;
    loss_count_ = state.loss_count;
    next_evaluation_ = state.next_evaluation;
    evaluated_ = state.evaluated;
    evaluations_ = state.evaluations;
    if (state.diverged) diverge(state.diverged_worker, state.diverged_seq, state.diverged_version);
    begun_ = begun_before_ = state.begun;
    saving_.resume_from(version_);
}

void JointBooks::save(ServerState state, BufferId weights, BufferId trend, Actions& actions) {
    const Progress at{state.now_ns, version_, epochs(samples_)};
    const ActionId id = state.last_id;
    saving_.begin(at, id, std::move(state), weights, trend, actions);
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
