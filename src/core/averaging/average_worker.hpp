// A worker of synchronous averaging: takes tau steps of its own from the joint model, with an optimizer whose state
// lasts from round to round, and hands on what it has made of it; or, exchanging gradients, computes one on it.
#pragma once

#include "core/averaging/among.hpp"
#include "core/averaging/local_worker.hpp"
#include "core/averaging/passing.hpp"
#include "core/averaging/tree_reduce.hpp"

#include <string>

namespace rubato {

struct AverageWorkerConfig {
    WorkerId worker = 0;
    std::int64_t parameters = 0;
    DealerConfig data;
    bool gradients = false;  ///< that are exchanged, instead of models
    SpreadSpec spread;
    bool operator==(const AverageWorkerConfig&) const = default;
};

class AverageWorker : public LocalWorker {
public:
    /// state: what it goes on from.
    explicit AverageWorker(const AverageWorkerConfig& config, const WorkerState& state = {});

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
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
    /// What there is of the reduce is given up.
    void reset_reduce(Actions& actions);
    void try_leave(Actions& actions);
    /// What the present phase took so far goes to its account.
    void book(Time now) { LocalWorker::book(now, account(books_)); }
    Time& account(WorkerRow& books) const;

    AverageWorkerConfig config_;
    Phase phase_ = Phase::waiting;
    Version version_ = -1;  ///< of the joint model that it has last had
    Among among_;
    Passing passing_;
    TreeReduce reduce_;
    Slice kept_;         ///< its contribution to the round, until the next one
    Share contributed_;  ///< what it said of that
    bool has_contributed_ = false, renews_ = false, given_up_ = false;
    BufferId sharing_ = no_buffer;
    ActionId share_ = 0;
    std::int64_t serial_ = -1;       ///< of the model of this round
    std::int64_t last_serial_ = -1;  ///< of the last model that there will be
};

}  // namespace rubato
