// The server's way from gradients to updates.
#include "core/learning_rate.hpp"
#include "core/server.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace rubato {

double Server::epoch() const {
    return static_cast<double>(accepted_samples_) / static_cast<double>(config_.samples);
}

RuleInfo Server::rule_info() const {
    RuleInfo info;
    info.version = static_cast<double>(version_);
    info.epoch = epoch();
    info.mean_staleness = last_mean_staleness_;
    info.lambda = config_.lambda;
    info.n = warm_ ? 1 : config_.n;
    info.batch_size = config_.batch_size;
    return info;
}

// The epoch that counts for the schedule is that of the samples already applied. A momentum of its own has the rate
// that goes with it.
Server::Rate Server::rate() const {
    const auto& optimizer = config_.optimizer;
    Rate rate;
    rate.scheduled =
        scheduled_rate(optimizer, static_cast<double>(applied_samples_) / static_cast<double>(config_.samples));
    rate.factor = config_.rule.kind == StalenessRule::Kind::none ? 1 : config_.rule.update_factor(rule_info());
    if (!optimizer.decoupled_momentum) return rate;
    const auto left = decoupled_momentum(optimizer.momentum, staleness_trend_);
    rate.momentum = left.momentum;
    rate.gain = left.gain;
    return rate;
}

double Server::local_rate() const {
    const auto& communication = config_.communication;
    if (!communication.any()) return 0;
    return scheduled_rate(config_.optimizer,
                          communication.local_learning_rate.value_or(config_.optimizer.learning_rate),
                          static_cast<double>(applied_samples_) / static_cast<double>(config_.samples));
}

inline void Server::take(Time now, RoleId from, const Push& push, BufferId gradient) {
    auto& contribution = round_.emplace_back(from - 1, push, gradient);
    contribution.row.seq = accepted_;
    contribution.row.apply_version = version_;
    if (config_.rule.weighs_gradients()) {
        RuleInfo info = rule_info();
        info.staleness = static_cast<double>(version_ - push.read_version);
        info.age = static_cast<double>(now - push.pull_ns) * 1e-9;
        info.worker = from - 1;
        info.samples = push.batch.count;
        contribution.factor = config_.rule.gradient_factor(info);
    }

    accepted_ += push.count;
    accepted_samples_ += push.batch.count;
    if (!config_.learns) return;
    loss_sum_ += push.loss * push.count;
    loss_count_ += push.count;
    if (!std::isfinite(push.loss)) diverge(from - 1, push.worker_seq, push.read_version);
}

void Server::accept(Time now, RoleId from, const Push& push, BufferId gradient, Actions& actions) {
    if (!traits_.alone && round_.empty() && config_.checkpoint.any()) boundary_ = {policy_, loss_sum_, loss_count_};
    if (traits_.word != Word::inquiry) hold(from).done_ns = now;
    const auto decision = on_arrival(policy_, {from - 1, push.read_version, version_, push.batch.count, now}, orders_);
    if (decision.discard) {
        actions.gradients.push_back(unapplied_row(from - 1, push, Outcome::dropped));
        actions.add<Release>(gradient);
        dealer_.give_back(push.batch);
        return carry_out(now, now, actions);
    }
    take(now, from, push, gradient);
    if (decision.fire) {
        fire(now, actions);
    } else {
        if (!traits_.batch_order) fold(round_.back(), actions);
        carry_out(now, now, actions);
    }
    check_stop(now, actions);
}

// All of a sum is in one update, which may so have more gradients than the policy asks for.
void Server::accept_sum(Time now, const std::vector<Push>& records, BufferId sum, Actions& actions) {
    bool fires = false;
    const std::size_t first = round_.size();
    for (const Push& record : records) {
        const RoleId from = record.worker + 1;
        if (traits_.word != Word::inquiry) hold(from).done_ns = now;
        const auto decision =
            on_arrival(policy_, {record.worker, record.read_version, version_, record.batch.count, now}, orders_);
        if (decision.discard) throw std::logic_error("a policy has discarded a part of a sum");
        fires = fires || decision.fire;
        take(now, from, record, std::exchange(sum, no_buffer));
    }
    if (fires) {
        fire(now, actions);
    } else {
        if (!traits_.batch_order) fold(round_[first], actions);
        carry_out(now, now, actions);
    }
    check_stop(now, actions);
}

// Gradients that wait for others are summed as they come, so that an inbox slot is free again at once. Each is weighted
// by its samples relative to the first one's, so that equal batches are added with their bits as they are. Workers do
// the same with the gradients of a push.
void Server::fold(Contribution& contribution, Actions& actions) {
    const double weight = static_cast<double>(unit(contribution.row)) / static_cast<double>(unit(round_.front().row));
    busy_ = true;
    busy_id_ = next_id();
    auto& fold = actions.add<Fold>(busy_id_, accumulator_, contribution.gradient, contribution.factor * weight);
    if (keeps()) {
        fold.weights = weights_;
        fold.version = version_;
        fold.read_version = contribution.row.read_version;
        fold.worker = contribution.row.worker;
    }
    accumulator_ = no_buffer;
}

void Server::expect(ActionId id) const {
    if (!busy_ || id != busy_id_) throw std::logic_error("a completion of work that the server did not ask for");
}

void Server::on(Time now, const Folded& event, Actions& actions) {
    expect(event.id);
    busy_ = false;
    accumulator_ = event.accumulator;
    // The only one that has a buffer; of a sum it is the first one.
    auto& contribution =
        *std::find_if(round_.rbegin(), round_.rend(), [](const auto& it) { return it.gradient != no_buffer; });
    actions.add<Release>(contribution.gradient);
    contribution.gradient = no_buffer;
    if (keeps()) forget_unread(actions);
    drain(now, actions);
}

void Server::fire(Time now, Actions& actions) {
    // A round is dealt in the order of the workers, so that is the order of the batches.
    if (traits_.batch_order)
        std::sort(round_.begin(), round_.end(),
                  [](const auto& a, const auto& b) { return a.row.worker < b.row.worker; });
    applying_.swap(round_);
    std::int64_t samples = 0;
    for (const auto& it : applying_) samples += it.row.samples;

    const auto first_part = static_cast<std::int32_t>(actions.parts.size());
    const auto total = static_cast<double>(samples);
    if (accumulator_ != no_buffer) {
        const double first = static_cast<double>(unit(applying_.front().row));
        actions.parts.push_back({accumulator_, first / total, applying_.front().row.read_version, 0});
    }
    for (const auto& it : applying_)
        if (it.gradient != no_buffer)
            actions.parts.push_back({it.gradient, it.factor * (static_cast<double>(unit(it.row)) / total),
                                     it.row.read_version, 1, it.row.worker});

    rate_ = rate();
    const auto first_step = static_cast<std::int32_t>(actions.steps.size());
    const auto parts = static_cast<std::int32_t>(actions.parts.size()) - first_part;
    actions.steps.push_back({first_part, parts, rate_.scheduled * rate_.factor * rate_.gain, rate_.momentum});
    if (keeps()) forget_unread(actions);
    busy_id_ = next_id();
    actions.add<Update>(busy_id_, weights_, version_, first_step, 1);
    weights_ = no_buffer;
    busy_ = true;
    fired_ns_ = now;
}

void Server::on(Time now, const Applied& event, Actions& actions) {
    expect(event.id);
    busy_ = false;
    weights_ = event.weights;
    if (accumulator_ != no_buffer) actions.add<Release>(accumulator_);
    accumulator_ = no_buffer;
    for (const auto& it : applying_)
        if (it.gradient != no_buffer) actions.add<Release>(it.gradient);
    emit_rows(now, actions);
    if (traits_.alone && traits_.word != Word::inquiry) hold(applying_.front().row.worker + 1).done_ns = now;
    applying_.clear();
    ++version_;
    if (keeps()) forget_unread(actions);
    on_applied(policy_, now, orders_);
    if (warm_ && applied_samples_ >= config_.warm_samples) end_warm_start();
    for (const auto& row : orders_.controller) actions.controller.push_back(row);
    orders_.controller.clear();
    if (config_.evaluate_every_epochs && epoch() >= next_evaluation_) {
        evaluation_due(now, actions);
        while (next_evaluation_ <= epoch()) next_evaluation_ += *config_.evaluate_every_epochs;
    }
    check_stop(now, actions);
    save_if_due(now, actions);
    if (interrupted_) {
        if (!stopping_) begin_stop(now, Status::interrupted, actions);
        status_ = Status::interrupted;
    }
    if (!begun_ && pause_ == Pause::none && !stopping_) begin_workers(now, actions);  // a warm start is over
    carry_out(now, fired_ns_, actions);
    feed_below(actions);
    drain(now, actions);
}

// The mean over the gradients so far, and later over the last ten of each worker.
double Server::trend(double before, double staleness, double gradients) const {
    const double window = std::min(static_cast<double>(accepted_), 10.0 * config_.lambda);
    return before + (staleness - before) * std::min(1.0, gradients / window);
}

void Server::emit_rows(Time now, Actions& actions) {
    UpdateRow update;
    double factors = 0;
    clock_.clear();
    for (auto& it : applying_) {
        clock_.add(it.row.read_version, it.row.count);
        update.samples += it.row.samples;
        update.contributors += it.row.count;
        factors += it.factor * it.row.count;
        it.row.applied_ns = now;
        it.row.scale = it.factor * rate_.factor;
        actions.gradients.push_back(it.row);
    }
    const auto contributors = static_cast<double>(update.contributors);
    applied_samples_ += update.samples;
    last_mean_staleness_ = clock_.mean_staleness(version_);
    staleness_trend_ = trend(staleness_trend_, last_mean_staleness_, contributors);
    update.time_ns = now;
    update.version = version_ + 1;
    update.mean_staleness = last_mean_staleness_;
    update.epoch = epoch();
    update.learning_rate = rate_.scheduled;
    update.effective_learning_rate = rate_.scheduled * rate_.factor * rate_.gain * (factors / contributors);
    actions.updates.push_back(update);
}

}  // namespace rubato
