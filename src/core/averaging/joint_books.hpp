// The books of whoever owns a joint model: its version, what has been taken into it, its evaluations, when the run is
// to end, and when it is saved. What makes a new version differs between protocols and is not its business.
#pragma once

#include "core/action.hpp"
#include "core/dealer.hpp"
#include "core/run_state.hpp"
#include "core/saving.hpp"
#include "core/server_config.hpp"

#include <optional>
#include <vector>

namespace rubato {

class JointBooks {
public:
    JointBooks() = default;
    /// Of the config: the rates of the optimizer, where to stop, and when to evaluate.
    explicit JointBooks(const ServerConfig& config)
        : config_(config), begun_(static_cast<std::size_t>(config.lambda)), saving_(config.checkpoint) {}
    /// Goes on from what state() told.
    void restore(const ServerState& state);

    Version version() const { return version_; }
    /// Of all steps that count.
    double epoch() const { return epochs(samples_ + ahead_samples_); }
    /// Of workers' steps that begin now.
    double rate() const;
    /// Steps that each of `workers` workers may still take, `most` at most and 1 at least, until the run has as many
    /// samples or gradients as it is to have.
    std::int32_t steps_left(std::int32_t most, int workers) const;

    /// Where steps are counted before they are in a version, this one is: for the epoch, and for the end of the run.
    void count(const GradientRow& row);
    /// It was lost before it came into one.
    void discount(const GradientRow& row);
    /// A step has been taken, whose loss may say that the run diverges.
    void look_at(const GradientRow& row);
    /// Steps make a new version of the joint model; states them and the update. rate: that they were taken with.
    void apply(Time now, std::vector<GradientRow>& rows, double rate, Actions& actions);
    /// A worker is gone that had begun so many gradients: those that have not come to the owner are stated by it.
    void lose(WorkerId worker, std::int64_t begun);
    /// States the gradient that a lost worker may have begun on `version`, beside the `told` ones it has told of since
    /// the run began or went on.
    void state_lost(WorkerId worker, Version version, std::int64_t told, const DealerConfig& data,
                    Actions& actions) const;
    /// What became of no version.
    static void leave_over(const std::vector<GradientRow>& rows, Actions& actions);

    /// Whether an evaluation of the present version is due; each is due once.
    bool evaluation_due();
    /// The final one, where it has not been asked for.
    bool final_evaluation_due() const { return config_.learns && config_.evaluate_at_end && evaluated_ != version_; }
    void evaluate(Time now, ActionId id, BufferId weights, Actions& actions);
    /// States its figures; whether they end the run.
    std::optional<Status> on(const Evaluated& event, Actions& actions);
    bool evaluating() const { return !evaluations_.empty(); }

    /// Before anything else happens: checkpoints are due at distances from here.
    void start(Time now) { saving_.start({now, version_, epoch()}); }
    /// A signal ends the run: what the last checkpoint lacks is saved.
    void interrupt() { interrupted_ = true; }
    bool interrupted() const { return interrupted_; }
    /// Whether the present version is to be saved; `stopping`: workers have been told to end, and what they state then
    /// belongs to the end of the run.
    bool save_due(Time now, bool stopping) const;
    /// Rows of steps that are in no version and have not been stated do not hinder that: their workers begin them anew.
    /// Some of a lost worker do, where later ones of it are stated already.
    bool can_leave_out(const std::vector<GradientRow>& rows) const;
    /// Its own part of the state.
    ServerState state(Time now, ActionId last_id) const;
    void save(ServerState state, BufferId weights, BufferId trend, Actions& actions);
    void on(const Saved& event) { saving_.on(event); }
    bool saving() const { return saving_.under_way(); }
    const ServerState* saved() const { return saving_.state(); }

    /// Why the run is to end now; empty: it goes on.
    std::optional<Status> end() const;
    /// The last action of the owner, where the run ends as `status` unless it has diverged.
    Finish finish(Status status) const;
    std::int64_t accepted() const { return accepted_; }
    bool operator==(const JointBooks&) const = default;

private:
    double epochs(std::int64_t samples) const {
        return static_cast<double>(samples) / static_cast<double>(config_.samples);
    }
    void diverge(WorkerId worker, std::int64_t worker_seq, Version version);

    ServerConfig config_;
    Version version_ = 0;
    std::int64_t accepted_ = 0, samples_ = 0;     ///< in the joint model
    std::int64_t ahead_ = 0, ahead_samples_ = 0;  ///< counted, and not in it
    double loss_sum_ = 0;                         ///< since the last evaluation
    std::int64_t loss_count_ = 0;
    double next_evaluation_ = 0;  ///< in epochs
    Version evaluated_ = -1;      ///< the last version that an evaluation was asked for
    std::vector<PendingEvaluation> evaluations_;
    bool diverged_ = false;
    Finish finish_;
    std::vector<std::int64_t> begun_;         ///< by worker: up to there all gradients are stated, or soon will be
    std::vector<std::int64_t> begun_before_;  ///< in earlier parts of the run; empty: there are none
    Saving saving_;
    bool interrupted_ = false;
};

}  // namespace rubato
