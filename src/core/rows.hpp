// Rows of the output contract, as the roles that own the facts state them. src/trace writes them.
#pragma once

#include "core/event.hpp"

#include <string_view>

namespace rubato {

enum class Outcome : std::uint8_t { applied, dropped, cancelled, leftover };

/// One started gradient, or the sum that a push carries; a row of gradients.csv. Times in nanoseconds; -1 where the
/// gradient never got there.
struct GradientRow {
    std::int64_t seq = 0;  ///< order of acceptance by the version owner; -1: never accepted
    WorkerId worker = 0;
    std::int64_t worker_seq = 0;
    Version read_version = 0;
    /// Version that the update replaces; staleness = apply_version - read_version. -1: never accepted. A leftover that
    /// was accepted has the version that its update would have replaced.
    Version apply_version = -1;
    std::int32_t samples = 0;
    std::int32_t count = 1;  ///< gradients in it; numbers in seq and worker_seq are the first one's
    Time pull_ns = -1, begin_ns = -1, end_ns = -1, push_ns = -1, applied_ns = -1;
    Outcome outcome = Outcome::applied;
    double scale = 1;  ///< factor of the staleness rule
    double loss = 0;
    Batch batch;
    bool operator==(const GradientRow&) const = default;
    std::int64_t staleness() const { return apply_version < 0 ? -1 : apply_version - read_version; }
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("seq", self.seq);
        field("worker", self.worker);
        field("worker_seq", self.worker_seq);
        field("read_version", self.read_version);
        field("apply_version", self.apply_version);
        field("samples", self.samples);
        field("pull_ns", self.pull_ns);
        field("begin_ns", self.begin_ns);
        field("end_ns", self.end_ns);
        field("push_ns", self.push_ns);
        field("applied_ns", self.applied_ns);
        field("outcome", self.outcome);
        field("scale", self.scale);
        field("loss", self.loss);
        field("batch", self.batch);
        field("count", Rare{self.count, 1});
    }
};

/// What became of a gradient at one of several shards; a row of shards.csv. Versions are that shard's.
struct ShardRow {
    std::int32_t shard = 0;
    WorkerId worker = 0;
    std::int64_t worker_seq = 0;
    Version read_version = 0;
    Version apply_version = -1;  ///< as in GradientRow
    Time applied_ns = -1;
    Outcome outcome = Outcome::applied;
    bool operator==(const ShardRow&) const = default;
    std::int64_t staleness() const { return apply_version < 0 ? -1 : apply_version - read_version; }
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("shard", self.shard);
        field("worker", self.worker);
        field("worker_seq", self.worker_seq);
        field("read_version", self.read_version);
        field("apply_version", self.apply_version);
        field("applied_ns", self.applied_ns);
        field("outcome", self.outcome);
    }
};

/// One update; a row of updates.csv.
struct UpdateRow {
    Time time_ns = 0;
    Version version = 0;  ///< the version that it makes
    std::int32_t shard = 0;
    std::int32_t contributors = 0;  ///< gradients
    double mean_staleness = 0;      ///< from the vector clock: Gupta et al. 2015, equation 2
    std::int64_t samples = 0;       ///< samples of this update
    double epoch = 0;               ///< accepted samples / N
    double learning_rate = 0;
    double effective_learning_rate = 0;  ///< times the mean factor of the rule, and that of a decoupled momentum
    bool operator==(const UpdateRow&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("time_ns", self.time_ns);
        field("version", self.version);
        field("shard", self.shard);
        field("contributors", self.contributors);
        field("mean_staleness", self.mean_staleness);
        field("samples", self.samples);
        field("epoch", self.epoch);
        field("learning_rate", self.learning_rate);
        field("effective_learning_rate", self.effective_learning_rate);
    }
};

/// One round of averaging, or one exchange of a single worker; a row of rounds.csv. -1: not known, or never.
struct RoundRow {
    std::int64_t round = 0;    ///< 0, 1, ...
    Version version = 0;       ///< of the joint model that it makes
    WorkerId worker = -1;      ///< whose exchange it is; -1: all workers' round
    std::int32_t shard = -1;   ///< whose round it is; -1: of the whole model
    std::int32_t workers = 0;  ///< in it
    std::int64_t steps = 0;    ///< of all of them
    std::int64_t samples = 0;
    Time broadcast_begin_ns = -1;  ///< the joint model leaves its owner
    Time broadcast_end_ns = -1;    ///< the last worker has it
    Time compute_begin_ns = -1, compute_end_ns = -1;
    Time reduce_begin_ns = -1;                        ///< the first worker is done with its steps
    Time reduce_end_ns = -1;                          ///< the mean is there
    Time prepare_begin_ns = -1, prepare_end_ns = -1;  ///< the joint model is made of it
    bool operator==(const RoundRow&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("round", self.round);
        field("version", self.version);
        field("worker", self.worker);
        field("shard", Rare{self.shard, -1});
        field("workers", self.workers);
        field("steps", self.steps);
        field("samples", self.samples);
        field("broadcast_begin_ns", self.broadcast_begin_ns);
        field("broadcast_end_ns", self.broadcast_end_ns);
        field("compute_begin_ns", self.compute_begin_ns);
        field("compute_end_ns", self.compute_end_ns);
        field("reduce_begin_ns", self.reduce_begin_ns);
        field("reduce_end_ns", self.reduce_end_ns);
        field("prepare_begin_ns", self.prepare_begin_ns);
        field("prepare_end_ns", self.prepare_end_ns);
    }
};

/// A worker hands on its part of a shard; a row of exchanges.csv.
struct ExchangeRow {
    std::int64_t cycle = 0;  ///< 0, 1, ...
    std::int32_t shard = 0;
    WorkerId worker = 0;
    std::int64_t steps = 0;  ///< since it last handed on that shard
    std::int64_t pulls = 0;  ///< of these that drew it towards the joint model
    Time asked_ns = 0;       ///< it is told to
    Time begin_ns = 0;       ///< its step is done: it pauses
    Time end_ns = 0;         ///< it goes on with steps
    bool operator==(const ExchangeRow&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("cycle", self.cycle);
        field("shard", self.shard);
        field("worker", self.worker);
        field("steps", self.steps);
        field("pulls", self.pulls);
        field("asked_ns", self.asked_ns);
        field("begin_ns", self.begin_ns);
        field("end_ns", self.end_ns);
    }
};

/// One evaluation; a row of evals.csv. `time_ns` is when the version was current, not when the figures were ready.
struct EvalRow {
    Time time_ns = 0;
    Version version = 0;
    double epoch = 0;
    std::int64_t samples = 0;          ///< accepted so far
    std::optional<double> train_loss;  ///< mean minibatch loss since the last row
    Metrics metrics;
    bool operator==(const EvalRow&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("time_ns", self.time_ns);
        field("version", self.version);
        field("epoch", self.epoch);
        field("samples", self.samples);
        field("train_loss", self.train_loss);
        field("metrics", self.metrics);
    }
};

/// Where a worker's time went, in nanoseconds from its start to the last applied update; a row of workers.csv.
struct WorkerRow {
    WorkerId worker = 0;
    std::int64_t gradients = 0;  ///< computed to the end
    std::int64_t inquiries = 0;
    std::int64_t pulls = 0;  ///< weight deliveries
    Time compute_ns = 0;
    Time push_queued_ns = 0, push_moving_ns = 0;
    Time pull_request_ns = 0, pull_moving_ns = 0;
    Time policy_wait_ns = 0;  ///< held back by the policy
    Time apply_wait_ns = 0;   ///< behind other work of the server
    Time idle_ns = 0;         ///< before the first and after the last piece of work
    Time hidden_ns = 0;       ///< part of compute_ns: computation while a push or a pull was under way beside it
    std::int64_t mixed = 0;   ///< of the gradients, those computed on several versions: shards had different ones
    bool operator==(const WorkerRow&) const = default;
    Time sum_ns() const {
        return compute_ns + push_queued_ns + push_moving_ns + pull_request_ns + pull_moving_ns + policy_wait_ns +
               apply_wait_ns + idle_ns;
    }
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("worker", self.worker);
        field("gradients", self.gradients);
        field("inquiries", self.inquiries);
        field("pulls", self.pulls);
        field("compute_ns", self.compute_ns);
        field("push_queued_ns", self.push_queued_ns);
        field("push_moving_ns", self.push_moving_ns);
        field("pull_request_ns", self.pull_request_ns);
        field("pull_moving_ns", self.pull_moving_ns);
        field("policy_wait_ns", self.policy_wait_ns);
        field("apply_wait_ns", self.apply_wait_ns);
        field("idle_ns", self.idle_ns);
        field("hidden_ns", Rare{self.hidden_ns, 0});
        field("mixed", Rare{self.mixed, 0});
    }
};

/// One question to a synchronization controller (policies/controller.hpp) and its answer; a row of controller.csv.
struct ControllerRow {
    Time time_ns = 0;  ///< of the push of `worker` that led to the question
    WorkerId worker = 0;
    std::int64_t pushes = 0;  ///< of the worker, this one included
    WorkerId slowest = -1;
    std::int64_t slowest_pushes = 0;
    std::int64_t gap = 0;  ///< pushes of the worker, less the fewest of all workers
    /// The table: last push and interval between the last two; -1: not known.
    Time last_push_ns = -1, interval_ns = -1, slowest_last_push_ns = -1, slowest_interval_ns = -1;
    std::int64_t r_limit = -1;                          ///< largest r that was looked at; -1: none could be
    std::int64_t granted = 0;                           ///< r*
    Time predicted_ns = -1, slowest_predicted_ns = -1;  ///< the two pushes that r* brings together; -1: none
    bool operator==(const ControllerRow&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("time_ns", self.time_ns);
        field("worker", self.worker);
        field("pushes", self.pushes);
        field("slowest", self.slowest);
        field("slowest_pushes", self.slowest_pushes);
        field("gap", self.gap);
        field("last_push_ns", self.last_push_ns);
        field("interval_ns", self.interval_ns);
        field("slowest_last_push_ns", self.slowest_last_push_ns);
        field("slowest_interval_ns", self.slowest_interval_ns);
        field("r_limit", self.r_limit);
        field("granted", self.granted);
        field("predicted_ns", self.predicted_ns);
        field("slowest_predicted_ns", self.slowest_predicted_ns);
    }
};

/// An iteration of a worker without a server; a row of iterations.csv.
struct IterationRow {
    WorkerId worker = 0;
    Iterated it;
    bool operator==(const IterationRow&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("worker", self.worker);
        field("it", self.it);
    }
};

/// A bucket of layers of a worker's gradient; a row of layers.csv.
struct BucketRow {
    WorkerId worker = 0;
    BucketTimes it;
    bool operator==(const BucketRow&) const = default;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("worker", self.worker);
        field("it", self.it);
    }
};

constexpr std::string_view name(Outcome outcome) {
    constexpr std::string_view names[] = {"applied", "dropped", "cancelled", "leftover"};
    return names[static_cast<int>(outcome)];
}

/// The row of a gradient that no update has taken in.
GradientRow unapplied_row(WorkerId worker, const Push& push, Outcome outcome);

/// What a shard states of a gradient.
ShardRow shard_row(int shard, const GradientRow& row);

}  // namespace rubato
