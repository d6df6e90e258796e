// Small objects that watch a run and complain of the first thing that is wrong.
#pragma once

#include "core/role.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace rubato::test {

/// Everything that a run said, in order.
struct Ledger {
    std::vector<GradientRow> gradients;
    std::vector<UpdateRow> updates;
    std::vector<EvalRow> evals;
    std::vector<WorkerRow> workers;
    std::vector<ControllerRow> controller;
    std::vector<ShardRow> shards;
    std::vector<RoundRow> rounds;
    std::vector<ExchangeRow> exchanges;
    std::vector<IterationRow> iterations;
    std::vector<BucketRow> buckets;

    void add(const Actions& actions) {
        gradients.insert(gradients.end(), actions.gradients.begin(), actions.gradients.end());
        updates.insert(updates.end(), actions.updates.begin(), actions.updates.end());
        evals.insert(evals.end(), actions.evals.begin(), actions.evals.end());
        workers.insert(workers.end(), actions.workers.begin(), actions.workers.end());
        controller.insert(controller.end(), actions.controller.begin(), actions.controller.end());
        shards.insert(shards.end(), actions.shards.begin(), actions.shards.end());
        rounds.insert(rounds.end(), actions.rounds.begin(), actions.rounds.end());
        exchanges.insert(exchanges.end(), actions.exchanges.begin(), actions.exchanges.end());
        iterations.insert(iterations.end(), actions.iterations.begin(), actions.iterations.end());
        buckets.insert(buckets.end(), actions.buckets.begin(), actions.buckets.end());
    }
    /// Gradients that the rows stand for.
    std::int64_t told() const {
        std::int64_t n = 0;
        for (const auto& row : gradients) n += row.count;
        return n;
    }
    std::int64_t count(Outcome outcome) const {
        std::int64_t n = 0;
        for (const auto& row : gradients) n += row.outcome == outcome ? row.count : 0;
        return n;
    }
};

inline void demand(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(what);
}

/// Watches each step: clocks do not run backwards, each action completes once, versions that a worker computes on do
/// not decrease, started gradients are counted.
class StepChecker {
public:
    void see(Time now, RoleId role, const Event& event, const Actions& actions) {
        demand(now >= now_, "the clock ran backwards");
        now_ = now;
        if (const auto* e = std::get_if<Taken>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<GradientReady>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<Cancelled>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<Folded>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<Stepped>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<Placed>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<Mixed>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<Summed>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<Applied>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<Evaluated>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<Saved>(&event)) complete(role, e->id);
        if (const auto* e = std::get_if<TimerFired>(&event)) complete(role, e->id);
        // What it had begun comes to nothing.
        if (std::holds_alternative<Crashed>(event))
            std::erase_if(open_, [=](const Key& key) { return key.first == role; });
        for (const auto& action : actions.list) {
            if (const auto* a = std::get_if<Send>(&action)) open(role, a->id);
            if (const auto* a = std::get_if<Compute>(&action)) {
                open(role, a->id);
                ++started;
                demand(seen_.insert({role, a->worker_seq}).second, "a batch was computed twice");
                if (a->batch.count <= 0) demand(false, "an empty batch was computed");
            }
            if (const auto* a = std::get_if<Fold>(&action)) open(role, a->id);
            if (const auto* a = std::get_if<LocalStep>(&action)) open(role, a->id);
            if (const auto* a = std::get_if<Place>(&action)) open(role, a->id);
            if (const auto* a = std::get_if<Mix>(&action)) open(role, a->id);
            if (const auto* a = std::get_if<Update>(&action)) open(role, a->id);
            if (const auto* a = std::get_if<Evaluate>(&action)) open(role, a->id);
            if (const auto* a = std::get_if<Save>(&action)) open(role, a->id);
            if (const auto* a = std::get_if<SetTimer>(&action)) timers_.insert({role, a->id}), open(role, a->id);
        }
    }
    /// Those that the state names from which a run goes on.
    void expect_evaluations(const std::vector<PendingEvaluation>& pending) {
        for (const auto& it : pending) open(0, it.id);
    }
    void at_end() const {
        for (const auto& id : open_) demand(timers_.count(id) > 0, "an action never completed");
    }
    std::int64_t started = 0;

private:
    using Key = std::pair<RoleId, ActionId>;
    void open(RoleId role, ActionId id) { demand(open_.insert({role, id}).second, "an action id was used twice"); }
    void complete(RoleId role, ActionId id) { demand(open_.erase({role, id}) == 1, "a completion of nothing"); }
    Time now_ = 0;
    std::set<Key> open_, timers_;
    std::set<std::pair<RoleId, std::int64_t>> seen_;
};

/// What must hold of every blocking star run, whatever its policy (docs/protocols.md, "What always holds"). started: of
/// a run from its beginning.
inline void check_books(const Scenario& scenario, std::int64_t samples, const Ledger& ledger, std::int64_t started) {
    const bool faults = !scenario.faults.empty();
    const auto lambda = scenario.lambda();
    demand(started == ledger.told(), "started " + std::to_string(started) + " gradients, but there are rows for " +
                                         std::to_string(ledger.told()));
    const bool drops = traits(scenario.protocol, lambda).drops || (faults && scenario.protocol.averages());
    demand(drops || ledger.count(Outcome::dropped) == 0, "the policy does not drop gradients");

    const auto& workers = scenario.workers;
    std::map<std::pair<WorkerId, std::int64_t>, int> times;
    std::map<Version, std::vector<const GradientRow*>> by_update;
    std::int64_t accepted_samples = 0;
    for (const auto& row : ledger.gradients) {
        // A sum that was given up had numbers for all of its gradients, also for those that were not begun.
        const auto due = gradients_in(row.batch, workers.batch_size);
        demand(
            row.count == due || (row.outcome == Outcome::cancelled && row.count >= 1 && row.count < due),
            "a row of " + std::to_string(row.count) + " gradients for " + std::to_string(row.batch.count) + " samples");
        demand(row.samples == row.batch.count && row.samples <= workers.slice_size(), "samples beyond the batch");
        for (std::int32_t k = 0; k < due; ++k)
            demand(++times[{row.worker, row.worker_seq + k}] == 1, "a gradient has two rows");
        if (row.outcome == Outcome::applied) {
            demand(row.read_version <= row.apply_version, "a gradient was applied before its weights existed");
            by_update[row.apply_version].push_back(&row);
            accepted_samples += row.samples;
        }
    }
    for (const auto& row : ledger.gradients)
        demand(row.worker_seq == 0 || times.count({row.worker, row.worker_seq - 1}) == 1, "a gradient was lost");

    Version version = 0;
    Time time = 0;
    for (const auto& update : ledger.updates) {
        demand(update.version == version + 1, "versions are not consecutive");
        demand(update.time_ns >= time, "updates are out of order");
        const auto& parts = by_update[version];
        double mean = 0;
        std::int32_t contributors = 0;
        for (const auto* part : parts) {
            mean += static_cast<double>(part->staleness()) * part->count;
            contributors += part->count;
        }
        demand(contributors == update.contributors, "contributors do not match the rows");
        if (contributors > 0) mean /= contributors;  // a version may take nothing new in: mpca
        demand(std::abs(mean - update.mean_staleness) < 1e-9, "the vector clock and the rows disagree on staleness");
        version = update.version;
        time = update.time_ns;
    }
    demand(by_update.size() == ledger.updates.size(), "rows name updates that were never made");

    if (scenario.stop.epochs && !scenario.stop.updates && !scenario.stop.gradients && !scenario.stop.seconds) {
        std::int64_t all = 0;
        // A batch whose gradient was dropped, given up or lost is dealt again.
        for (const auto& row : ledger.gradients)
            if (!(drops || faults) || row.outcome == Outcome::applied || row.outcome == Outcome::leftover)
                all += row.samples;
        demand(all == std::llround(*scenario.stop.epochs * static_cast<double>(samples)),
               "the epochs do not hold their samples");
    }
}

/// The same where the servers are sharded: the books of shard 0 are those of a star, and every other shard that owns
/// something has a row of its own for each gradient, and updates that are made of them.
inline void check_shard_books(const Scenario& scenario, std::int64_t samples, const Ledger& all, std::int64_t started,
                              int used) {
    Ledger first = all;
    std::erase_if(first.updates, [](const UpdateRow& row) { return row.shard != 0; });
    check_books(scenario, samples, first, started);
    std::map<std::pair<WorkerId, std::int64_t>, const GradientRow*> gradients;
    for (const auto& row : all.gradients) gradients[{row.worker, row.worker_seq}] = &row;
    std::set<std::tuple<int, WorkerId, std::int64_t>> told;
    std::map<std::pair<int, Version>, std::vector<std::int64_t>> by_update;
    for (const auto& row : all.shards) {
        demand(row.shard >= 0 && row.shard < used, "a shard without parameters has rows");
        demand(told.insert({row.shard, row.worker, row.worker_seq}).second, "a gradient has two rows of one shard");
        const auto found = gradients.find({row.worker, row.worker_seq});
        demand(found != gradients.end(), "a shard tells of a gradient that was never begun");
        const auto& gradient = *found->second;
        if (row.shard == 0)
            demand(row.read_version == gradient.read_version && row.apply_version == gradient.apply_version &&
                       row.outcome == gradient.outcome,
                   "the row of shard 0 is not that of the gradient");
        demand((row.outcome == Outcome::cancelled) == (gradient.outcome == Outcome::cancelled),
               "a gradient is cancelled for some shards and not for others");
        if (row.outcome != Outcome::applied) continue;
        demand(row.read_version <= row.apply_version, "a shard applied a gradient before its weights existed");
        by_update[{row.shard, row.apply_version}].push_back(row.staleness());
    }
    demand(static_cast<std::int64_t>(told.size()) == started * used, "a shard has no row for a gradient");
    std::map<int, Version> versions;
    for (const auto& update : all.updates) {
        demand(update.version == ++versions[update.shard], "versions of a shard are not consecutive");
        const auto& parts = by_update[{update.shard, update.version - 1}];
        double mean = 0;
        for (const auto staleness : parts) mean += static_cast<double>(staleness);
        demand(static_cast<std::int32_t>(parts.size()) == update.contributors, "contributors of a shard do not match");
        demand(std::abs(mean / static_cast<double>(parts.size()) - update.mean_staleness) < 1e-9,
               "a shard's vector clock and its rows disagree on staleness");
    }
    demand(by_update.size() == all.updates.size(), "rows of a shard name updates that were never made");
}

/// The conservation law of a blocking star, exactly and by worker: each of the V updates of a run is, for each worker,
/// either part of the staleness of the gradient that it had under way, or made between its push and its next read.
/// Summed over the workers and divided by the gradients: mean staleness + mean updates between push and next read (the
/// one that the push itself fires left out) = (lambda - 1) / c, up to the ends of the run, whose size is known. Holds
/// of pushes, of however many gradients, where each is followed by a pull.
inline void check_conservation(const Scenario& scenario, const Ledger& ledger) {
    const auto versions = static_cast<std::int64_t>(ledger.updates.size());
    std::map<WorkerId, std::vector<const GradientRow*>> by_worker;
    std::map<Version, std::int64_t> last_of_update;  // seq of the gradient that fired it
    for (const auto& row : ledger.gradients) {
        if (row.outcome != Outcome::applied) continue;
        by_worker[row.worker].push_back(&row);
        auto [it, fresh] = last_of_update.emplace(row.apply_version, row.seq);
        if (!fresh) it->second = std::max(it->second, row.seq);
    }
    std::vector<Time> made{0};
    for (const auto& update : ledger.updates) made.push_back(update.time_ns);
    std::int64_t staleness = 0, between = 0, tails = 0;
    for (const auto& [worker, rows] : by_worker) {
        std::int64_t total = 0, gradients = 0;
        for (std::size_t k = 0; k < rows.size(); ++k) {
            const auto& row = *rows[k];
            demand(row.worker_seq == gradients, "a worker's gradients are applied out of order");
            gradients += row.count;
            demand(made[static_cast<std::size_t>(row.read_version)] <= row.begin_ns, "weights from the future");
            const auto until = k + 1 < rows.size() ? rows[k + 1]->read_version : versions;
            demand(until >= row.apply_version, "a worker read weights older than those it has contributed to");
            const bool fired = last_of_update[row.apply_version] == row.seq;
            const auto later = until - row.apply_version - (fired ? 1 : 0);
            staleness += row.staleness();
            (k + 1 < rows.size() ? between : tails) += later;
            total += row.staleness() + later + (fired ? 1 : 0);
        }
        demand(total == versions, "the updates of the run do not add up for a worker");
    }
    const auto idle = scenario.lambda() - static_cast<std::int64_t>(by_worker.size());
    demand(staleness + between + tails + idle * versions == versions * (scenario.lambda() - 1),
           "the conservation law does not hold");
}

}  // namespace rubato::test
