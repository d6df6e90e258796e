// A worker of gossip: gossip_monitor.hpp says what it does. At the end of a step it takes what it has been handed, then
// hands in its model for a mean where it was asked to, then hands its own on where that is due, and goes on with steps.
// Messages, and the sums of means, go on beside its steps.
#pragma once

#include "core/averaging/among.hpp"
#include "core/averaging/local_worker.hpp"
#include "core/averaging/tree_reduce.hpp"

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace rubato {

struct GossipWorkerConfig {
    WorkerId worker = 0;
    std::int64_t parameters = 0;
    DealerConfig data;
    int tau = 1;             ///< steps between hand-overs
    std::uint64_t seed = 1;  ///< of whom it hands its model to
    OptimizerSpec optimizer;
    bool operator==(const GossipWorkerConfig&) const = default;
};

class GossipWorker : public LocalWorker {
public:
    /// state: what it goes on from.
    explicit GossipWorker(const GossipWorkerConfig& config, const WorkerState& state = {});

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return phase_ == Phase::finished; }
    WorkerRow books(Time now) const;
    /// What it has of the one weight that there is, without what is under way.
    double weight() const { return weight_; }
    bool operator==(const GossipWorker&) const = default;

private:
    /// For the first word; taking what it was handed; copying its model for a mean; a step; no more steps.
    enum class Phase : std::uint8_t { waiting, merging, copying, computing, stepping, resting, down, finished };
    /// A model that it was handed, and what came with it of the weight.
    struct Handed {
        Slice model;
        double weight = 0;
        bool operator==(const Handed&) const = default;
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

    void on_stop(Time now, const Stop& stop, Actions& actions);
    void on_gossip(Time now, const Delivered& event, const Gossip& gossip, Actions& actions);
    void on_share(Time now, const Delivered& event, const Share& share, Actions& actions);
    void ask(Time now, std::int64_t number);
    /// Between two steps.
    void at_boundary(Time now, Actions& actions);
    void hand_over(Actions& actions);
    void hand_in(Time now, BufferId copy, Actions& actions);
    void begin_step(Time now, Actions& actions);
    void go_on_reducing(Time now, Actions& actions);
    /// No more steps.
    void rest(Actions& actions);
    void try_leave(Actions& actions);
    void book(Time now) { LocalWorker::book(now, account(books_)); }
    Time& account(WorkerRow& books) const;
    Mix& mix(Phase phase, Time now, Actions& actions);
    double rate() const;
    // gossip_worker_faults.cpp
    void on_membership(Time now, const Membership& change, Actions& actions);
    /// It is back: the last mean, to have a model until it is handed another one.
    void on_model(Time now, const Delivered& event, const Model& model, Actions& actions);
    /// Its model is handed in anew, as soon as nothing of the old one is under way.
    void try_renew(Time now, Actions& actions);
    void reset_reduce(Actions& actions);
    void take_held(Time now, Actions& actions);
    /// Those who have a part of the data, and are there.
    std::vector<WorkerId> peers() const;

    GossipWorkerConfig config_;
    Phase phase_ = Phase::waiting;
    Among among_;
    std::vector<WorkerId> workers_;  ///< who have a part of the data, and are there
    double sharers_ = 1;             ///< of the data, in the whole run
    double weight_ = 0;
    bool waits_ = false;  ///< to be handed some of the weight: it is back
    std::deque<Handed> handed_;
    std::int64_t came_ = 0, expected_ = -1;  ///< models that others have handed it since it began
    std::int64_t taken_ = 0, samples_ = 0;   ///< steps of the run, and their samples
    std::int64_t since_handed_over_ = 0, since_handed_in_ = 0;
    std::int64_t hand_overs_ = 0;
    Version version_ = 0;                ///< of the last mean that has its model
    std::optional<Exchanged> exchange_;  ///< a mean that it has not handed in its model for
    std::int64_t mean_ = 0;              ///< number of the last one that it was asked for
    std::optional<Exchanged> said_;      ///< of what it has handed in for that
    bool renews_ = false;
    TreeReduce reduce_;
    BufferId sharing_ = no_buffer;
    ActionId share_ = 0, hand_over_ = 0, mixing_ = 0;
    Gossip handing_;                    ///< what is said of the model that it hands over
    bool last_ = false, left_ = false;  ///< the mean at the end is asked for; it may leave
    bool said_bye_ = false;
};

}  // namespace rubato
