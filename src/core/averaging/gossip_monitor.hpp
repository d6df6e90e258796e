// The monitor of gossip (GoSGD; Blot, Picard, Cord and Thome 2016): workers train models of their own, and after tau
// steps each hands its model to a random other one, which takes the mean of the two, weighted by what they have of the
// one weight that there is. Nobody waits, and nobody owns a joint model.
//
// The monitor counts steps and says when the run is over. Where an evaluation is due, and at the end, it asks for the
// weighted mean of all models, over a binary tree of the workers: that is a joint model, and makes a version. The mean
// at the end is of all the weight, what was under way included. gossip_faults.cpp says what becomes of it in crashes.
#pragma once

#include "core/averaging/average_driver.hpp"
#include "core/averaging/muster.hpp"

#include <string>
#include <vector>

namespace rubato {

class GossipMonitor {
public:
    /// state: of an earlier part of the run, from which it goes on; null: from the beginning.
    explicit GossipMonitor(const AverageConfig& config, const ServerState* state = nullptr);

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return finished_; }
    /// What a Save that is under way saves; null: none is.
    const ServerState* saved() const { return books_.saved(); }
    bool operator==(const GossipMonitor&) const = default;

private:
    /// Of a worker.
    struct Peer {
        std::vector<GradientRow> rows;  ///< steps that it has told of, and that it has handed in for no mean
        std::int64_t told = 0;          ///< of the run
        std::int64_t expected = -1;     ///< of the run, said by its Bye
        std::int64_t handed = 0;        ///< models that others have handed it since it began
        std::int32_t joined = 0;        ///< number of the change by which it is there
        bool bye = false;
        bool guest = false;      ///< back as the run ends, it has no part in the mean at the end
        bool handed_in = false;  ///< its model, for the mean under way
        bool holds = false;      ///< some of the weight
        bool operator==(const Peer&) const = default;
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

    void take(RoleId role, const Push& push, Actions& actions);
    void hand_in(Time now, RoleId role, const Exchanged& said);
    /// Begins a mean where one is due, or ends one that is there.
    void go_on(Time now, Actions& actions);
    void begin_mean(Actions& actions);
    void make(Time now, Actions& actions);
    /// Of which nothing becomes.
    void end_mean(Actions& actions);
    void save_if_due(Time now, Actions& actions);
    void end_interrupted(Time now, Actions& actions);
    void begin_stop(Status status, Actions& actions);
    void send_stop(RoleId role, std::int64_t replies, Actions& actions);
    bool quiet() const;
    void leave_over(Actions& actions);
    void try_finish(Time now, Actions& actions);
    // gossip_faults.cpp
    void tell(RoleId role, const Membership& change, Actions& actions);
    /// Of the steps of a lost worker, those that are in no mean.
    void drop_rows(Peer& lost, Actions& actions);
    /// What has been handed in for the mean under way is handed in anew.
    void begin_anew();
    void take_back(Actions& actions);
    void dismiss(Actions& actions);
    /// Where nobody is left who has any of the weight, one of those who are there has all of it.
    void give_weight(Actions& actions);
    /// Members of whom it holds.
    template <class Holds>
    int count(Holds&& holds) const {
        int number = 0;
        muster_.each([&](RoleId role) { number += holds(peers_[static_cast<std::size_t>(role - 1)]); });
        return number;
    }
    void hold(Peer& peer, bool holds) {
        holders_ += static_cast<int>(holds) - static_cast<int>(peer.holds);
        peer.holds = holds;
    }
    bool has_data(RoleId role) const { return own_batch(config_.data, role - 1, 0).count > 0; }
    std::int64_t mean_number() const { return round_.round + 1; }
    Peer& peer(RoleId role) { return peers_.at(static_cast<std::size_t>(role - 1)); }
    ActionId next_id() { return ++last_id_; }

    AverageConfig config_;
    JointBooks books_;
    std::vector<Peer> peers_;
    Muster muster_;
    int holders_ = 0;               ///< of some of the weight
    BufferId weights_ = no_buffer;  ///< of the last version; lent while they are replaced
    bool owed_ = false;             ///< a mean is due
    bool averaging_ = false;        ///< one is under way
    int mean_group_ = 0;            ///< Membership::number of those among whom it is
    bool summed_ = false;
    TreeReduce::Sum sum_;
    ActionId making_ = 0;
    std::vector<GradientRow> rows_;  ///< of the steps in it
    RoundRow round_;
    std::int64_t sends_under_way_ = 0;
    ActionId last_id_ = 0;
    bool stopping_ = false, last_ = false, finished_ = false;  ///< last_: the mean at the end is asked for
    bool let_go_ = false;                                      ///< workers have been told that they may leave
    Status status_ = Status::finished;
};

}  // namespace rubato
