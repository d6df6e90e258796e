// The driver of synchronous averaging: owns the joint model, which all workers start a round from and whose next
// version is made of the mean of what they have made of it.
//
//   broadcast (binomial) -> tau steps of every worker -> binary-tree reduce to worker 0 and from there to the driver
//   -> prepare: the joint model of the mean -> ...
//
// sparknet (Moritz et al. 2015; Langer et al. 2018, section 2): the mean is the joint model. Exchanging gradients
// (FireCaffe, Iandola et al. 2016), the mean gradient of one step is applied by the driver's optimizer.
// local-sgd, diloco (Douillard et al. 2023): an outer step of Nesterov's towards it. With D = joint - mean:
// b = mu * b + D; joint -= eta * (D + mu * b).
//
// streaming-diloco (Douillard et al. 2025): the same of one fragment of the model after the other, with a b of its own.
// Workers go on with steps meanwhile, so that rounds are told apart by the numbers of the steps.
#pragma once

#include "core/averaging/broadcast.hpp"
#include "core/averaging/joint_books.hpp"
#include "core/averaging/muster.hpp"
#include "core/averaging/tree_reduce.hpp"
#include "core/dealer.hpp"
#include "core/let_go.hpp"
#include "core/shards.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace rubato {

struct AverageConfig {
    ServerConfig run;               ///< rates, where to stop, when to evaluate
    DealerConfig data;              ///< as workers draw their batches
    AveragingSpec averaging;        ///< tau and what is exchanged
    std::vector<Range> parts = {};  ///< fragments that are exchanged in turn; empty: all at once
    bool operator==(const AverageConfig&) const = default;
};

class AverageDriver {
public:
    /// state: of an earlier part of the run, from which it goes on; null: from the beginning.
    explicit AverageDriver(const AverageConfig& config, const ServerState* state = nullptr);

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return finished_; }
    /// What a Save that is under way saves; null: none is.
    const ServerState* saved() const { return books_.saved(); }
    bool operator==(const AverageDriver&) const = default;

private:
    /// Of a worker.
    struct Peer {
        std::int32_t steps = 0;      ///< of this round that it has told of
        bool merged = false;         ///< one of them is made on what was broadcast in it
        std::int64_t told = 0;       ///< of the run
        std::int64_t expected = -1;  ///< of the run, said by its Bye
        bool bye = false;
        bool anew = false;   ///< has been admitted since the last round began, and has not had its model
        bool whole = false;  ///< was sent all of it, in this round: its steps do not say that it has what is broadcast
        bool operator==(const Peer&) const = default;
    };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const Mixed& event, Actions& actions);
    void on(Time now, const Applied& event, Actions& actions);
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

    void begin_round(Time now, Actions& actions);
    void take(Time now, WorkerId worker, const Push& push, Actions& actions);
    void count_in(WorkerId worker, const Push& push);
    void take_early();
    /// The mean and all that was told of it are there: makes the next version.
    void try_prepare(Time now, Actions& actions);
    void take_outer_step(Actions& actions);
    void prepared(Time now, BufferId weights, Actions& actions);
    void save_if_due(Time now, Actions& actions);
    void end_interrupted(Time now, Actions& actions);
    void begin_stop(Status status, Actions& actions);
    /// last: serial_of the last joint model that it is sent.
    void send_stop(RoleId role, std::int64_t last, std::int64_t replies, Actions& actions);
    bool has_data(RoleId role) const { return own_batch(config_.data, role - 1, 0).count > 0; }
    void try_finish(Time now, Actions& actions);
    // average_faults.cpp
    /// What a worker has told of this round goes with it.
    void drop_rows(WorkerId worker, Actions& actions);
    void drop_early(WorkerId worker, Actions& actions);
    /// Nobody is left to go on with it, nor to have what has been made in it.
    void give_up_round(Actions& actions);
    /// Those that are back take part from this round on.
    void take_back(Actions& actions);
    void try_rejoin(Actions& actions);
    void tell(RoleId role, const Membership& change, Actions& actions);
    /// What this round began with.
    void send_model(RoleId role, Actions& actions);
    /// Streaming: all of the joint model, to one that begins anew.
    void send_whole(RoleId role, std::int64_t number, Actions& actions);
    /// Members that have a part of the data.
    int active() const;
    Peer& peer(RoleId role) { return peers_.at(static_cast<std::size_t>(role - 1)); }
    const Peer& peer(RoleId role) const { return peers_.at(static_cast<std::size_t>(role - 1)); }
    bool streams() const { return !config_.parts.empty(); }
    /// Steps of a worker in a round, where they are as many in all.
    std::int32_t steps_of_round() const { return config_.averaging.tau / config_.averaging.stream.fragments; }
    std::size_t fragment(std::int64_t round) const {
        const auto parts = static_cast<std::int64_t>(std::max<std::size_t>(1, config_.parts.size()));
        return static_cast<std::size_t>((round + parts) % parts);  // of round -1: the last one
    }
    /// What the round exchanges of it.
    Slice exchanged(std::int64_t round, BufferId buffer) const {
        if (!streams()) return {buffer, 0, config_.run.parameters};
        const Range& part = config_.parts[fragment(round)];
        return {buffer, part.first, part.count};
    }
    ActionId next_id() { return ++last_id_; }

    AverageConfig config_;
    JointBooks books_;
    std::vector<Peer> peers_;
    Muster muster_;
    std::int64_t restarts_ = 0;     ///< rounds that nobody was left to end
    BufferId weights_ = no_buffer;  ///< lent to the driver while the next version is made
    BufferId trend_ = no_buffer;    ///< b of the outer step
    std::vector<bool> has_trend_;   ///< by fragment
    Broadcast broadcast_;
    bool spread_ = false;    ///< the round began with one
    bool first_ = true;      ///< no round has begun since the run did, or went on
    Model model_;            ///< of the round under way, or of the last one
    bool running_ = false;   ///< a round is, until its mean is there
    bool given_up_ = false;  ///< the last one was, for nobody was left
    bool preparing_ = false;
    bool summed_ = false;  ///< the mean is there
    TreeReduce::Sum sum_;
    ActionId preparing_id_ = 0;
    bool trending_ = false;                         ///< that is b
    std::vector<GradientRow> rows_;                 ///< of this round
    std::vector<std::pair<WorkerId, Push>> early_;  ///< of the next one
    RoundRow round_;
    std::int64_t sends_under_way_ = 0;
    ActionId last_id_ = 0;
    bool stopping_ = false, finished_ = false;
    Status status_ = Status::finished;
};

}  // namespace rubato
