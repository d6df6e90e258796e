// Elastic averaging (Zhang, Choromanska and LeCun 2015, EASGD): the server's joint model and the models of the workers
// are drawn towards each other, one worker at a time and without any barrier.
//
// After tau steps a worker stops and asks for the joint model. With d = alpha * (own - joint) it moves by -d, and goes
// on with its steps while d is on its way; the server moves by the very same d when that arrives (equations 2 and 3).
//
// The same server takes in the deltas of asynchronous local SGD (async-diloco; Liu et al. 2024, algorithms 3 and 4): a
// worker sends Delta = pulled - own after its steps, and waits for the joint model that it goes on from. With N pushes
// a step of the momentum, joint -= eta / N * Delta at once; and with every N-th also b = beta * b + the mean of the
// last N deltas, joint -= eta * beta * b.
#pragma once

#include "core/averaging/average_driver.hpp"

#include <deque>
#include <string>
#include <vector>

namespace rubato {

class ElasticServer {
public:
    /// state: of an earlier part of the run, from which it goes on; null: from the beginning.
    explicit ElasticServer(const AverageConfig& config, const ServerState* state = nullptr);

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return finished_; }
    /// What a Save that is under way saves; null: none is.
    const ServerState* saved() const { return books_.saved(); }
    bool operator==(const ElasticServer&) const = default;

private:
    /// Of a worker.
    struct Peer {
        std::vector<GradientRow> rows;  ///< steps that it has told of, and that no difference that came is made of
        std::int64_t told = 0;          ///< of the run
        std::int64_t expected = -1;     ///< of the run, said by its Bye
        std::int64_t models = 0;        ///< that it was sent, the first word included,
        std::int64_t shares = 0;        ///< and answers to them: to all but that one where it asks for the others
        std::int32_t steps = 0;         ///< that it was last told to take
        Time took_ns = 0;               ///< what the steps that it has told of took it to compute
        Time served_ns = -1;            ///< when it was sent the last one
        bool bye = false;
        bool down = false;
        bool operator==(const Peer&) const = default;
    };
    /// What waits its turn: a difference that has come, or, without a payload, the wish for the joint model.
    struct Work {
        RoleId from = 0;
        Slice payload;
        Share said;
        Time arrived_ns = 0;
        bool lost = false;  ///< its worker has crashed since, and waits for nothing
        bool operator==(const Work&) const = default;
    };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const Mixed& event, Actions& actions);
    void on(Time now, const Evaluated& event, Actions& actions);
    void on(Time now, const Saved& event, Actions& actions);
    void on(Time now, const TimerFired& event, Actions& actions);
    void on(Time now, const Interrupted& event, Actions& actions);
    void on(Time now, const PeerLost& event, Actions& actions);
    void on(Time now, const PeerDown& event, Actions& actions);
    void on(Time now, const PeerBack& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    /// Events that it is not told of.
    template <class Other>
    void on(Time now, const Other& event, Actions& actions);

    bool takes_deltas() const { return config_.averaging.delayed.pushes > 0; }
    void serve(Time now, RoleId role, Actions& actions);
    std::int32_t steps_of(const Peer& worker) const;
    /// The joint model takes in what the first message has; b before it.
    void move(Actions& actions);
    /// Deals with what has come, one after the other; with a difference once all is told of it.
    void go_on(Time now, Actions& actions);
    void save_if_due(Time now, Actions& actions);
    void end_interrupted(Time now, Actions& actions);
    void begin_stop(Status status, Actions& actions);
    void try_finish(Time now, Actions& actions);
    Peer& peer(RoleId role) { return peers_.at(static_cast<std::size_t>(role - 1)); }
    ActionId next_id() { return ++last_id_; }

    AverageConfig config_;
    JointBooks books_;
    std::vector<Peer> peers_;
    BufferId weights_ = no_buffer;  ///< lent to the driver while they move
    BufferId trend_ = no_buffer;    ///< b
    std::deque<Work> inbox_;
    ActionId moving_ = 0;    ///< by the first in it
    bool trending_ = false;  ///< that is b
    Time moving_ns_ = 0;
    std::int64_t exchanges_ = 0;
    std::int64_t sends_under_way_ = 0;
    ActionId last_id_ = 0;
    bool stopping_ = false, finished_ = false;
    Status status_ = Status::finished;
};

}  // namespace rubato
