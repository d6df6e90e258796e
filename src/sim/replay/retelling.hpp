// The schedule of a recorded run under another update rule: the same order, the same staleness, other mathematics.
#pragma once

#include "sim/replay/recomputation.hpp"
#include "trace/recorder.hpp"

#include <deque>
#include <string>
#include <utility>

namespace rubato::sim {

/// Bytes of messages, as the recorded run counted them.
struct MessageSizes {
    std::int64_t push = 0, pull = 0, control = 0;
};

/// Roles of their own, with another optimizer, are given the recorded events: every decision that depends on a loss or
/// an evaluation (a divergence, a target) is the recorded one, so that nothing moves. Only what is told of it, losses
/// and figures, is that of the new weights.
class Retelling final : public RecomputationListener {
public:
    /// roles: those of the run with the other optimizer, as they are where the log begins. stop_on_divergence: whether
    /// to end where a loss or an evaluation is not finite. All rows go to `recorder`. resumed: the checkpoint that the
    /// log begins with; null: it begins with the run.
    Retelling(std::vector<Role> roles, bool stop_on_divergence, const MessageSizes& sizes, trace::Recorder& recorder,
              const trace::Checkpoint* resumed);

    void on_gradient(RoleId role, const Compute& compute, const GradientReady& recorded, double loss) override;
    void on_evaluated(RoleId role, const Evaluate& evaluate, const Evaluated& recorded,
                      const Metrics& metrics) override;
    /// Throws ScheduleChanged (same_schedule.hpp).
    const Actions* on_step(Time now, RoleId role, const Event& event, const Actions& recorded) override;

    /// After the last step: roles that have not finished state what became of their gradients.
    void close(const Recomputation& recomputation);
    /// Status finished or diverged; without names and hash.
    const trace::DriverReport& report() const { return report_; }
    bool diverged() const { return report_.status == Status::diverged; }

private:
    using GradientKey = std::pair<WorkerId, std::int64_t>;  ///< worker, worker_seq
    /// A push that has come to the version owner, and which no evaluation has counted yet.
    struct Arrived {
        GradientKey key;
        std::int64_t samples = 0;
        double loss = 0;
    };

    double loss_of(GradientKey key) const;
    void look_at(RoleId role, const Event& event);
    void diverge(const Finish& finish);
    void rewrite();
    std::optional<double> train_loss(std::int64_t samples);
    void count(Time now, RoleId role, const Event& event);
    void record(Time now, RoleId role, const Event& event);

    std::vector<Role> roles_;
    std::vector<bool> finished_, lost_;
    bool stop_on_divergence_;
    MessageSizes sizes_;
    trace::Recorder& recorder_;
    Actions actions_;
    std::map<GradientKey, double> losses_;  ///< of gradients that no row has told yet
    std::map<Version, Metrics> figures_;    ///< of evaluations that no row has told yet
    std::deque<Arrived> arrived_;
    std::int64_t counted_samples_ = 0;  ///< of pushes that an evaluation has counted
    double loss_sum_ = 0;               ///< of pushes before the log that no evaluation has counted yet
    std::int64_t loss_count_ = 0;
    bool stopping_ = false;  ///< the version owner takes in no more
    std::map<ActionId, Time> apply_since_;
    Time now_ = 0;
    trace::DriverReport report_;
    trace::ServerRow server_;
};

}  // namespace rubato::sim
