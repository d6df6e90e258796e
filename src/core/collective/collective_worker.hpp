// A worker without a server: a replica of the model, whose gradients are added up with those of all others.
//
//   sync        gradient, allreduce, apply (Daily, Vishnu and Siegel 2016, section 5.1)
//   no-comm     gradient, apply: replicas diverge, and nothing is faster
//   layer-wise  buckets of layers are reduced, one after the other, while earlier layers are still computed; then they
//               are applied: when all are there, in the order of the backward pass, or as they come
//   delayed     the allreduce of gradient t goes on beside the next k gradients, and is applied at the end of iteration
//               t + k; the last k are drained. adaptive-delay: k is chosen anew every some iterations, by all alike.
#pragma once

#include "core/collective/allreduce.hpp"
#include "core/collective/delay_choice.hpp"
#include "core/collective/plan.hpp"
#include "core/saving.hpp"

#include <deque>
#include <string>
#include <vector>

namespace rubato {

struct CollectiveConfig {
    WorkerId worker = 0;
    std::int64_t parameters = 0;
    DealerConfig data;
    CollectiveSpec spec;
    OptimizerSpec optimizer;      ///< its rates
    std::vector<Bucket> buckets;  ///< of make_buckets
    double bytes_of_one = 4;      ///< of a gradient message, by element
    std::int64_t last = -1;       ///< iterations of the run; -1: until the monitor says so
    bool hands_over = false;      ///< worker 0: the monitor evaluates or saves its replica
    std::optional<double> evaluate_every_epochs;
    bool pauses = false;  ///< all hold while a version is evaluated, with nothing in flight
    CheckpointSpec checkpoint;
    bool traces_buckets = false;  ///< tells the monitor of each
    bool operator==(const CollectiveConfig&) const = default;
};

class CollectiveWorker {
public:
    /// its: what it goes on from, at its.version of the replica, of which `samples` have been applied.
    explicit CollectiveWorker(const CollectiveConfig& config, const WorkerState& its = {}, std::int64_t samples = 0);

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
    std::int64_t begun() const { return gradients_; }
    WorkerRow books(Time now) const;
    bool operator==(const CollectiveWorker&) const = default;

private:
    /// Copies the weights that it begins from; holds while a version is evaluated; makes a gradient of nothing, where
    /// it has no batch; a gradient; for allreduces; a step; copying its replica for the monitor; until the monitor says
    /// whether there are more iterations.
    enum class Phase : std::uint8_t {
        beginning,
        holding,
        zeroing,
        computing,
        waiting,
        stepping,
        copying,
        resting,
        finished
    };
    /// A bucket of a gradient.
    struct Part {
        Allreduce reduce;
        bool there = false, applied = false;
        BucketTimes times;
        bool operator==(const Part&) const = default;
    };
    /// A gradient, from its beginning until it is applied.
    struct Flight {
        std::int64_t iteration = 0;
        BufferId gradient = no_buffer;  ///< owned once it is whole
        double weight = 1;
        std::int64_t samples = 0;  ///< of all workers
        std::vector<Part> parts;
        bool operator==(const Flight&) const = default;
    };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const LayerReady& event, Actions& actions);
    void on(Time now, const GradientReady& event, Actions& actions);
    void on(Time now, const Folded& event, Actions& actions);
    void on(Time now, const Placed& event, Actions& actions);
    void on(Time now, const Mixed& event, Actions& actions);
    void on(Time now, const Summed& event, Actions& actions);
    void on(Time now, const Applied& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    /// Events that it is not told of.
    template <class Other>
    void on(Time now, const Other& event, Actions& actions);

    bool communicates() const { return config_.spec.mode != CollectiveMode::no_comm && config_.data.lambda > 1; }
    /// Alone and without a part of the data there is nothing to do.
    bool takes_part() const { return communicates() || batch_of(config_.data, config_.worker, 0).count > 0; }
    bool layer_wise() const { return config_.spec.mode == CollectiveMode::layer_wise; }
    void begin_iteration(Time now, Actions& actions);
    void drain(Time now, Actions& actions);
    /// Whether an evaluation of its version is due; each is due once.
    bool evaluation_due();
    double epoch() const { return static_cast<double>(applied_samples_) / static_cast<double>(config_.data.samples); }
    void take_whole(Time now, BufferId gradient, Actions& actions);
    /// Begins the allreduces of the last flight that may begin; others of it go on.
    void reduce(Time now, Actions& actions);
    void go_on(Time now, Actions& actions);
    /// Whether what is to be applied in this iteration may be: then the next of it is.
    void apply(Time now, Actions& actions);
    /// -1: none is there, or none that may come before others.
    int next_part(const Flight& flight) const;
    void applied_all(Time now, Actions& actions);
    void end_iteration(Time now, Actions& actions);
    /// saves: with the state of its optimizer.
    void hand_over(Time now, bool saves, Actions& actions);
    void try_leave(Actions& actions);
    /// The allreduce that an event is of; null: none.
    template <class Completion>
    Allreduce* reduce_of(const Completion& event);
    double rate() const;
    /// What the present phase took so far goes to its account.
    void book(Time now);
    Time& account(WorkerRow& books) const;
    bool communicating() const;
    template <class M>
    void tell(const M& message, Actions& actions) {
        ++sends_under_way_;
        actions.add<Send>(next_id(), 0, Channel::control, Message(message), Slice{});
    }
    ActionId next_id() { return ++last_id_; }

    CollectiveConfig config_;
    Phase phase_ = Phase::resting;
    BufferId weights_ = no_buffer;  ///< lent while a step is taken
    Version version_ = 0;
    std::int64_t iteration_ = 0;        ///< that have begun
    std::int64_t gradients_ = 0;        ///< of its own that have begun
    std::int64_t applied_samples_ = 0;  ///< of all workers
    std::deque<Flight> flights_;        ///< the oldest first
    std::size_t to_apply_ = 0;          ///< of these, in this iteration
    bool started_ = false;              ///< the allreduces of the last one are begun
    int applying_ = -1;                 ///< part of the first flight
    DelayChoice delay_;
    Push record_;                                     ///< of its last gradient
    std::vector<std::pair<ActionId, Push>> told_of_;  ///< under way to the monitor
    ActionId compute_ = 0, work_ = 0, bye_ = 0;
    BufferId copy_ = no_buffer;  ///< of its replica, on its way to the monitor
    double next_evaluation_ = 0;
    Saving saving_;                       ///< when a version may be saved
    Version handed_over_ = 0, kept_ = 0;  ///< kept_: with the state of its optimizer
    bool sends_copy_ = false;             ///< that it makes
    bool holds_ = false;                  ///< as soon as nothing is in flight
    Version onward_ = -1;                 ///< up to here it need not hold any more
    std::vector<Delivered> early_;        ///< of allreduces that it has not begun
    std::vector<Allreduce> closing_;      ///< whose sum it has, and whose sends are not all taken
    Iterated told_;
    bool iterates_ = false;               ///< and has not told of it yet
    std::int64_t last_ = -1;              ///< iterations of the run
    bool paused_ = false, over_ = false;  ///< over_: the monitor has said which iteration is the last
    std::int64_t sends_under_way_ = 0;
    ActionId last_id_ = 0;
    Time since_ns_ = 0, seen_ns_ = 0;
    WorkerRow books_;
};

}  // namespace rubato
