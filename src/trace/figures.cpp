#include "trace/figures.hpp"

#include "trace/text_reader.hpp"
#include "trace/text_writer.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace rubato::trace {
namespace {

std::optional<double> metric(const EvalRow& row, std::string_view name) {
    if (name == "train_loss") return row.train_loss;
    std::optional<double> value;
    Metrics::each(row.metrics, [&](std::string_view field, const std::optional<double>& figure) {
        if (field == name) value = figure;
    });
    return value;
}

void keep_last(std::optional<double>& kept, const std::optional<double>& value) {
    if (value) kept = value;
}

}  // namespace

Figures::Figures(const Scenario& scenario, std::int64_t samples_per_epoch, std::int64_t parameters)
    : workers_(static_cast<std::size_t>(std::max(0, scenario.lambda()))),
      stop_(scenario.stop),
      samples_per_epoch_(samples_per_epoch),
      warm_samples_(std::llround(scenario.protocol.warm_epochs * static_cast<double>(samples_per_epoch))) {
    const Shards all = make_shards(scenario, parameters);
    for (int shard = 0; all.any() && shard < all.count(); ++shard) {
        PerShard& it = shards.emplace_back();
        it.role = all.role(shard);
        it.parameters = parameters > 0 ? all.range(shard).count : all.range(shard).count / 4;
    }
}

void Figures::add(const Actions& actions) {
    for (const GradientRow& row : actions.gradients) add(row);
    for (const ShardRow& row : actions.shards) {
        PerShard& shard = shards.at(static_cast<std::size_t>(row.shard));
        ++shard.outcomes.of(row.outcome);
        if (row.outcome == Outcome::applied) shard.staleness.add(row.staleness(), 1);
    }
    for (const UpdateRow& row : actions.updates) {
        last_update_ns = std::max(last_update_ns, row.time_ns);
        if (!shards.empty()) ++shards.at(static_cast<std::size_t>(row.shard)).updates;
        if (row.shard > 0) continue;
        ++updates;
        steady.add(row);
        // Under hardsync all that is accepted is applied at once, so that its epoch tells what was applied before.
        const double before = row.epoch * static_cast<double>(samples_per_epoch_) - static_cast<double>(row.samples);
        if (warm_samples_ == 0 || std::llround(before) >= warm_samples_) continue;
        ++warm_start_updates;
        warm_start_ns = row.time_ns;
    }
    for (const EvalRow& row : actions.evals) add(row);
    for (const WorkerRow& row : actions.workers)
        if (row.worker >= 0 && static_cast<std::size_t>(row.worker) < workers_.size())
            workers_[static_cast<std::size_t>(row.worker)].times = row;
}

void Figures::add(const FaultRow& row) {
    const std::string_view event = row.event;
    ++(event == "crash" ? faults.crashes : event == "return" ? faults.returns : faults.links);
}

void Figures::add(const GradientRow& row) {
    outcomes.of(row.outcome) += row.count;
    const bool applied = row.outcome == Outcome::applied;
    if (applied) staleness.add(row.staleness(), row.count);
    if (applied || (row.outcome == Outcome::leftover && row.apply_version >= 0)) samples += row.samples;
    if (row.worker < 0 || static_cast<std::size_t>(row.worker) >= workers_.size()) return;
    pending_.push_back({row.worker, row.count, row.outcome, row.staleness()});
    if (pending_.size() >= pending_max) add_pending();
}

// Of ten thousand workers none has its figures in a cache. Those of many are fetched at once, and not one after
// another.
void Figures::add_pending() {
    for (const Pending& it : pending_) __builtin_prefetch(&workers_[static_cast<std::size_t>(it.worker)], 1);
    for (const Pending& it : pending_)
        if (it.outcome == Outcome::applied)
            workers_[static_cast<std::size_t>(it.worker)].staleness.prefetch(it.staleness);
    for (const Pending& it : pending_) {
        PerWorker& worker = workers_[static_cast<std::size_t>(it.worker)];
        worker.outcomes.of(it.outcome) += it.count;
        if (it.outcome == Outcome::applied) worker.staleness.add(it.staleness, it.count);
    }
    pending_.clear();
}

const std::vector<Figures::PerWorker>& Figures::workers() {
    add_pending();
    return workers_;
}

void Figures::add(const EvalRow& row) {
    keep_last(train_loss, row.train_loss);
    keep_last(metrics.valid_loss, row.metrics.valid_loss);
    keep_last(metrics.valid_error, row.metrics.valid_error);
    keep_last(metrics.test_loss, row.metrics.test_loss);
    keep_last(metrics.test_error, row.metrics.test_error);
    keep_last(metrics.gradient_norm, row.metrics.gradient_norm);
    keep_last(metrics.suboptimality, row.metrics.suboptimality);
    const auto& error = row.metrics.valid_error;
    if (error && std::isfinite(*error) && (!best_valid_error || *error < *best_valid_error)) best_valid_error = error;
    if (target || !stop_.target) return;
    const auto value = metric(row, stop_.target->metric);
    if (value && *value <= stop_.target->at_most) target = TargetReached{row.time_ns, row.version, row.samples};
}

std::string Figures::to_text() {
    add_pending();
    TextWriter writer;
    each(*this, writer);
    return writer.take();
}

void Figures::from_text(const std::string& text) {
    const std::string spaced = ' ' + text;
    TextReader reader(spaced);
    each(*this, reader);
    reader.end();
}

double Figures::epochs() const {
    return samples_per_epoch_ > 0 ? static_cast<double>(samples) / static_cast<double>(samples_per_epoch_) : 0;
}

Figures::WorkerTimes Figures::worker_times() const {
    WorkerTimes sum;
    for (const PerWorker& worker : workers_) {
        if (!worker.times) continue;
        const WorkerRow& row = *worker.times;
        sum.compute_ns += row.compute_ns;
        sum.exposed_ns += row.push_queued_ns + row.push_moving_ns + row.pull_request_ns + row.pull_moving_ns;
        sum.exposed_ns += row.apply_wait_ns;
        sum.hidden_ns += row.hidden_ns;
        sum.wait_ns += row.policy_wait_ns;
    }
    return sum;
}

std::optional<double> Figures::shards_staleness() const {
    double sum = 0, weights = 0;
    for (const PerShard& shard : shards) {
        const auto mean = shard.staleness.mean();
        if (!mean) continue;
        sum += *mean * static_cast<double>(shard.parameters);
        weights += static_cast<double>(shard.parameters);
    }
    return weights > 0 ? std::optional(sum / weights) : std::nullopt;
}

std::optional<std::int64_t> Figures::mixed_gradients() const {
    if (shards.empty()) return std::nullopt;
    std::int64_t mixed = 0;
    for (const PerWorker& worker : workers_)
        if (worker.times) mixed += worker.times->mixed;
    return mixed;
}

Progress Figures::progress(Time now_ns) const {
    Progress out;
    out.now_ns = now_ns;
    out.samples = samples;
    out.gradients = outcomes.applied;
    out.updates = updates;
    out.epochs = epochs();
    if (metrics.valid_error) out.last_valid_error = *metrics.valid_error;
    out.mean_staleness = staleness.mean().value_or(0);
    const auto towards = [&](double done, double whole) {
        if (whole > 0) out.fraction = std::max(out.fraction, std::min(1.0, done / whole));
    };
    if (stop_.epochs) towards(out.epochs, *stop_.epochs);
    if (stop_.updates) towards(static_cast<double>(updates), static_cast<double>(*stop_.updates));
    if (stop_.gradients) towards(static_cast<double>(out.gradients), static_cast<double>(*stop_.gradients));
    if (stop_.seconds) towards(static_cast<double>(now_ns) / 1e9, *stop_.seconds);
    return out;
}

}  // namespace rubato::trace
