// A worker of synchronous averaging: takes tau steps of its own from the joint model, with an optimizer whose state
// lasts from round to round, and hands on what it has made of it; or, exchanging gradients, computes one on it.
#pragma once

#include "core/averaging/local_steps.hpp"
#include "core/averaging/passing.hpp"
#include "core/averaging/tree_reduce.hpp"
#include "core/let_go.hpp"

#include <string>
#include <vector>

namespace rubato {

struct AverageWorkerConfig {
    WorkerId worker = 0;
    std::int64_t parameters = 0;
    DealerConfig data;
    bool gradients = false;  ///< that are exchanged, instead of models
    SpreadSpec spread;
    bool operator==(const AverageWorkerConfig&) const = default;
};

class AverageWorker {
public:
    /// state: what it goes on from.
    explicit AverageWorker(const AverageWorkerConfig& config, const WorkerState& state = {});

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
    std::int64_t begun() const { return steps_.begun(); }
    WorkerRow books(Time now) const;
    bool operator==(const AverageWorker&) const = default;

private:
    /// For the joint model; passing it on; its steps; until the means below it are added; until that is taken.
    enum class Phase : std::uint8_t { waiting, passing, computing, stepping, reducing, sharing, down, finished };

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

    void on_model(Time now, const Delivered& event, const Model& model, Actions& actions);
    void on_share(Time now, const Delivered& event, const Share& share, Actions& actions);
    void on_membership(Time now, const Membership& change, Actions& actions);
    /// It is back, among those who are there now.
    void join(Time now, const Membership& change, Actions& actions);
    /// Of what came before the word on those among whom it goes, what can be looked at now.
    void take_held(Time now, Actions& actions);
    /// The reduce begins anew, as soon as nothing of the old one is under way.
    void try_renew(Time now, Actions& actions);
    /// No collective matters any more.
    void give_up(Time now, Actions& actions);
    void begin_round(Time now, const Delivered& event, const Model& model, Actions& actions);
    void go_on_passing(Time now, Actions& actions);
    /// The next step, or the end of them.
    void go_on_with_steps(Time now, Actions& actions);
    /// The run ends in the middle of the steps.
    void cut_short(Time now, Actions& actions);
    /// The steps are done: what the round has from this worker.
    void contribute(Time now, const Slice& mean, double weight, Actions& actions);
    void go_on_reducing(Time now, Actions& actions);
    TreeReduce fresh_reduce() const { return members_.reduce(config_.worker, false); }
    void try_leave(Actions& actions);
    /// What the present phase took so far goes to its account.
    void book(Time now);
    Time& account(WorkerRow& books) const;
    ActionId next_id() { return ++last_id_; }

    AverageWorkerConfig config_;
    Phase phase_ = Phase::waiting;
    BufferId weights_ = no_buffer;  ///< the joint model, then its own; handed over to the sum
    Version version_ = -1;          ///< of the joint model that it has last had
    LocalSteps steps_;
    Members members_;
    Passing passing_;
    TreeReduce reduce_;
    Slice kept_;         ///< its contribution to the round, until the next one
    Share contributed_;  ///< what it said of that
    bool has_contributed_ = false, renews_ = false, given_up_ = false;
    std::vector<Delivered> held_;    ///< of changes of the members that it has not been told of
    std::vector<WorkerId> lacking_;  ///< who is absent, as it is told of when it is back
    static constexpr std::int32_t outside = -1;
    std::int32_t joined_ = 0;  ///< number of the change by which it is there; outside: it is not told yet
    BufferId sharing_ = no_buffer;
    ActionId share_ = 0, bye_ = 0;
    std::int64_t sends_under_way_ = 0;
    ActionId last_id_ = 0;
    bool stopping_ = false, cancelled_ = false;
    std::int64_t serial_ = -1;       ///< of the model of this round
    std::int64_t last_serial_ = -1;  ///< of the last model that there will be
    Time since_ns_ = 0;
    WorkerRow books_;
};

}  // namespace rubato
