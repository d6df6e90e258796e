// A worker of averaging in phases: phase_driver.hpp says what the driver does. It takes steps all the time, each from
// where it is drawn towards the joint model a little, and pauses at the end of a step only to copy its part of a shard
// and to take what it has been sent. Sums and messages go on beside its steps.
#pragma once

#include "core/averaging/among.hpp"
#include "core/averaging/local_worker.hpp"
#include "core/averaging/passing.hpp"
#include "core/averaging/phase_driver.hpp"
#include "core/averaging/tree_reduce.hpp"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace rubato {

struct PhaseWorkerConfig {
    WorkerId worker = 0;
    std::int64_t parameters = 0;
    DealerConfig data;
    PhasesSpec phases;
    std::vector<Range> parts;  ///< of the shards
    SpreadSpec spread;
    bool operator==(const PhaseWorkerConfig&) const = default;
};

class PhaseWorker : public LocalWorker {
public:
    /// state: what it goes on from.
    explicit PhaseWorker(const PhaseWorkerConfig& config, const WorkerState& state = {});

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
    WorkerRow books(Time now) const;
    bool operator==(const PhaseWorker&) const = default;

private:
    /// For the first word; its first copy of the joint model; its part of a shard; what it was sent; the pull; a step,
    /// whose gradient has the pull in it (drawing); no more steps.
    enum class Phase : std::uint8_t {
        waiting,
        preparing,
        copying,
        taking,
        pulling,
        computing,
        drawing,
        stepping,
        resting,
        down,
        finished
    };
    /// What it has been sent of the joint model.
    struct Sent {
        Model model;
        Slice payload;
        bool operator==(const Sent&) const = default;
    };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const GradientReady& event, Actions& actions);
    void on(Time now, const Cancelled& event, Actions& actions);
    void on(Time now, const Applied& event, Actions& actions);
    void on(Time now, const Mixed& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    void on(Time now, const Crashed& event, Actions& actions);
    void on(Time now, const Restarted& event, Actions& actions);
    /// Events that it is not told of.
    template <class Other>
    void on(Time now, const Other& event, Actions& actions);

    void on_exchange(Time now, const Exchange& exchange, Actions& actions);
    void on_model(Time now, const Delivered& event, const Model& model, Actions& actions);
    void begin(Time now, Actions& actions);
    // phase_worker_faults.cpp
    void on_membership(Time now, const Membership& change, Actions& actions);
    /// The reduce begins anew, as soon as nothing of the old one is under way.
    void try_renew(Time now, Actions& actions);
    /// Of what came before the word on those among whom it goes, what can be looked at now.
    void take_held(Time now, Actions& actions);
    void give_up(Time now, Actions& actions);
    /// What there is of the reduce is given up.
    void reset_reduce(Actions& actions);
    /// Between two steps.
    void at_boundary(Time now, Actions& actions);
    void take_next(Time now, Actions& actions);
    void begin_step(Time now, Actions& actions);
    void compute(Time now, Actions& actions);
    void begin_to_step(Time now, Actions& actions);
    /// Its part of the shard is copied, or, at the end of a run, not even that.
    void contribute(Time now, BufferId copy, Actions& actions);
    void tell_exchanged(Time now, Actions& actions);
    void go_on_reducing(Time now, Actions& actions);
    void go_on_passing(Actions& actions);
    /// The shard that a piece is of.
    Slice shard_of(const Slice& piece) const;
    /// No more steps: what has come is let go, and others are served.
    void rest(Time now, Actions& actions);
    void try_leave(Actions& actions);
    void book(Time now) { LocalWorker::book(now, account(books_)); }
    Time& account(WorkerRow& books) const;
    Mix& mix(Phase phase, Time now, Actions& actions);
    double alpha() const { return config_.phases.alpha.at(taken_); }
    bool pulls() const { return !config_.phases.alpha.zero(); }

    PhaseWorkerConfig config_;
    Phase phase_ = Phase::waiting;
    BufferId joint_ = no_buffer;              ///< what it is drawn to; none where it never is
    BufferId gradient_ = no_buffer;           ///< until its step
    std::vector<std::int64_t> tau_, pulled_;  ///< by shard, since it was handed on
    std::int64_t taken_ = 0;                  ///< steps of the run
    double rate_ = 0;
    Version version_ = 0;               ///< of the joint model as it has last taken it
    std::optional<Exchange> exchange_;  ///< that is not done with
    Exchanged exchanged_;
    std::deque<Sent> sent_;  ///< and passed on
    Among among_;
    Passing passing_;
    Model passed_;  ///< what that is of
    TreeReduce reduce_;
    std::optional<Exchange> contributed_;  ///< the last one that it handed on its part for
    bool renews_ = false, given_up_ = false;
    BufferId sharing_ = no_buffer;
    ActionId share_ = 0, mixing_ = 0;
    std::int64_t exchanges_ = 0, broadcasts_ = 0;  ///< that it was told of
    std::int64_t exchanges_expected_ = -1, broadcasts_expected_ = -1;
};

}  // namespace rubato
