// What the rows of a run add up to. Every figure is exact, whatever rows the tables keep.
#pragma once

#include "core/action.hpp"
#include "core/scenario.hpp"
#include "core/shards.hpp"
#include "trace/coarse_histogram.hpp"
#include "trace/histogram.hpp"
#include "trace/recorder.hpp"
#include "trace/steady.hpp"
#include "trace/tables.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rubato::trace {

/// When the target of the scenario was reached.
struct TargetReached {
    Time time_ns = 0;
    std::int64_t updates = 0;
    std::int64_t samples = 0;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("time_ns", self.time_ns);
        field("updates", self.updates);
        field("samples", self.samples);
    }
};

/// How much broke.
struct FaultCounts {
    std::int64_t crashes = 0, returns = 0, links = 0;
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("crashes", self.crashes);
        field("returns", self.returns);
        field("links", self.links);
    }
};

/// Sums over the rows that came. Not safe for threads.
class Figures {
public:
    /// samples_per_epoch: training samples of one epoch, the N of epochs = samples / N; 0 where it is not known.
    /// parameters: of the model, by which shards are weighted; 0 where there is none.
    Figures(const Scenario& scenario, std::int64_t samples_per_epoch, std::int64_t parameters = 0);

    void add(const Actions& actions);
    void add(const FaultRow& row);
    Progress progress(Time now_ns) const;

    /// Sums over the workers that came to their end.
    struct WorkerTimes {
        Time compute_ns = 0;
        Time exposed_ns = 0;  ///< communication that was not hidden, queueing at the server included
        Time hidden_ns = 0;   ///< communication beside computation
        Time wait_ns = 0;     ///< held back by the policy
    };
    struct PerWorker {
        Outcomes outcomes;
        CoarseHistogram staleness;
        std::optional<WorkerRow> times;
        template <class Self, class F>
        static void each(Self& self, F&& field) {
            field("outcomes", self.outcomes);
            field("staleness", self.staleness);
        }
    };

    Outcomes outcomes;
    Histogram staleness;  ///< of applied gradients
    SteadyWindow steady;
    std::int64_t updates = 0;
    Time last_update_ns = 0;
    std::int64_t warm_start_updates = 0;  ///< those of hardsync, before the protocol's own
    Time warm_start_ns = 0;               ///< the last of them
    /// Accepted by the server: those of applied gradients, and of left-over ones that name the version that they were
    /// accepted for.
    std::int64_t samples = 0;
    std::optional<double> train_loss;  ///< the last that was measured; so are the metrics
    Metrics metrics;
    std::optional<double> best_valid_error;
    std::optional<TargetReached> target;
    FaultCounts faults;

    /// One of several servers. Of all together the figures above are those of shard 0, but for last_update_ns.
    struct PerShard {
        RoleId role = 0;
        std::int64_t parameters = 0;  ///< float32 elements of a gradient message where there is no model
        Outcomes outcomes;
        Histogram staleness;  ///< of applied gradients
        std::int64_t updates = 0;
    };
    std::vector<PerShard> shards;  ///< empty unless the servers are sharded
    /// Mean over shards, each with the weight of its parameters, of the mean staleness of the gradients it applied.
    std::optional<double> shards_staleness() const;
    /// Gradients that were computed on different versions of different shards.
    std::optional<std::int64_t> mixed_gradients() const;

    double epochs() const;
    WorkerTimes worker_times() const;
    /// Figures by worker.
    const std::vector<PerWorker>& workers();

    /// All of them, for checkpoints, but for times of workers, which are stated at the end.
    std::string to_text();
    /// Goes on from there. Throws std::invalid_argument where the text is none of to_text.
    void from_text(const std::string& text);

private:
    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("outcomes", self.outcomes);
        field("staleness", self.staleness);
        field("steady", self.steady);
        field("updates", self.updates);
        field("last_update_ns", self.last_update_ns);
        field("warm_start_updates", self.warm_start_updates);
        field("warm_start_ns", self.warm_start_ns);
        field("samples", self.samples);
        field("train_loss", self.train_loss);
        field("metrics", self.metrics);
        field("best_valid_error", self.best_valid_error);
        field("target", self.target);
        field("faults", self.faults);
        field("workers", self.workers_);
    }
    /// An outcome that is not yet in its worker's figures.
    struct Pending {
        std::int32_t worker;
        std::int32_t count;  ///< gradients
        Outcome outcome;
        std::int64_t staleness;
    };
    static constexpr std::size_t pending_max = 64;

    void add(const GradientRow& row);
    void add_pending();
    void add(const EvalRow& row);

    std::vector<PerWorker> workers_;
    std::vector<Pending> pending_;
    StopSpec stop_;
    std::int64_t samples_per_epoch_;
    std::int64_t warm_samples_;  ///< of the warm start, as the engine counts them
};

}  // namespace rubato::trace
