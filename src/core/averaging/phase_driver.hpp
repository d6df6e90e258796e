// The driver of averaging in phases (Langer et al. 2018, MPCA SGD): the model is cut into shards, and while one is
// reduced, another is made ready and a third is broadcast. No worker ever waits: the driver alone has barriers.
//
// With R the mean of a shard over the workers, x the driver's state, which alone moves by what was, v its motion and x*
// what workers are drawn to:
//   x_t = (1 - beta) x_(t-1) + beta R                    (equation 8)
//   v_t = delta v_(t-1) + (1 - delta) (x_t - x_(t-1))    (equation 4)
//   x*  = x_t + gamma v_t                                (equation 5)
// t counts means of the shard. phase_plan.hpp says which shard is in which stage.
#pragma once

#include "core/averaging/broadcast.hpp"
#include "core/averaging/joint_books.hpp"
#include "core/averaging/muster.hpp"
#include "core/averaging/phase_plan.hpp"
#include "core/averaging/tree_reduce.hpp"
#include "core/dealer.hpp"
#include "core/let_go.hpp"

#include <string>

namespace rubato {

struct PhaseConfig {
    ServerConfig run;   ///< rates, where to stop, when to evaluate
    DealerConfig data;  ///< as workers draw their batches
    PhasesSpec phases;
    std::vector<Range> parts;  ///< of the shards
    SpreadSpec spread;
    bool operator==(const PhaseConfig&) const = default;
};

/// The parts of the model that the shards are, none empty; there may be fewer than asked for.
std::vector<Range> phase_parts(const Scenario& scenario, std::int64_t parameters);

class PhaseDriver {
public:
    /// state: of an earlier part of the run, from which it goes on; null: from the beginning.
    explicit PhaseDriver(const PhaseConfig& config, const ServerState* state = nullptr);

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return finished_; }
    /// What a Save that is under way saves; null: none is.
    const ServerState* saved() const { return books_.saved(); }
    bool operator==(const PhaseDriver&) const = default;

private:
    /// A stage of the cycle under way.
    enum class Stage : std::uint8_t { waits, runs, done };
    /// Of a worker.
    struct Peer {
        std::vector<GradientRow> rows;  ///< steps that it has told of since it last handed on a shard
        std::int64_t told = 0;          ///< of the run
        std::int64_t expected = -1;     ///< of the run, said by its Bye
        bool bye = false;
        std::int64_t exchanges = 0, broadcasts = 0;  ///< that it takes part in, since it began
        bool received = false;                       ///< what is broadcast
        bool exchanged = false;                      ///< its part of what is reduced
        bool operator==(const Peer&) const = default;
    };
    /// What is known of a shard between its reduce and the end of its broadcast.
    struct Shard {
        std::int64_t means = 0;          ///< that its state is made of
        TreeReduce::Sum sum;             ///< the mean that it is to be made of next
        std::vector<GradientRow> rows;   ///< steps that came with it, and with no other one before
        BufferId published = no_buffer;  ///< x*, in its part of the buffer
        RoundRow round;                  ///< of its last mean
        bool in_round = false;           ///< which has not been stated
        bool operator==(const Shard&) const = default;
    };
    /// What the Mix under way is for.
    enum class Making : std::uint8_t { nothing, rest, motion, state, published };

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

    /// What can go on now does: stages, cycles, the end.
    void go_on(Time now, Actions& actions);
    bool go_on_in_cycle(Time now, Actions& actions);
    void begin_broadcast(Time now, Actions& actions);
    void begin_reduce(Time now, Actions& actions);
    void try_end_broadcast(Time now);
    void try_end_reduce(Time now);
    /// The next of what makes a shard ready; false: it is.
    void make(Making what, int shard, Actions& actions);
    void made(Time now, BufferId out, Actions& actions);
    void state_round(Shard& shard, Actions& actions);
    void take(WorkerId worker, const Push& push, Actions& actions);
    void save_if_due(Time now, Actions& actions);
    void end_interrupted(Time now, Actions& actions);
    void begin_stop(Status status, Actions& actions);
    void try_finish(Time now, Actions& actions);
    void leave_over(Actions& actions);
    void send_stop(RoleId role, Actions& actions);
    // phase_driver_faults.cpp
    /// Those that are back take part from this cycle on.
    void take_back(Actions& actions);
    /// Those that are back as the run ends.
    void dismiss(Actions& actions);
    void tell(RoleId role, const Membership& change, Actions& actions);
    /// Of the steps of a lost worker, those that are in no mean.
    void drop_rows(WorkerId worker, bool of_reduce, Actions& actions);
    /// Nobody is left for the stages under way.
    void end_stages(Actions& actions);
    /// Nobody is left to go on from the mean of the reduce under way: the steps in it go with it.
    void drop_reduced(Actions& actions);
    /// Members of whom it holds.
    template <class Holds>
    int count(Holds&& holds) const {
        int number = 0;
        muster_.each([&](RoleId role) { number += holds(peers_[static_cast<std::size_t>(role - 1)]); });
        return number;
    }
    /// A member has a part of the data.
    bool any_active() const;
    bool all_received() const {
        return count([](const Peer& it) { return !it.received; }) == 0;
    }
    bool all_exchanged() const {
        return count([](const Peer& it) { return !it.exchanged; }) == 0;
    }
    Slice part(int shard, BufferId buffer) const;
    /// x and v are whole only where neither is being made.
    bool is_made() const { return making_ != Making::nothing && making_ != Making::published; }
    bool moves() const { return !config_.phases.gamma.zero(); }
    Peer& peer(RoleId role) { return peers_.at(static_cast<std::size_t>(role - 1)); }
    Shard& shard(int number) { return shards_[static_cast<std::size_t>(number)]; }
    ActionId next_id() { return ++last_id_; }

    PhaseConfig config_;
    JointBooks books_;
    std::vector<Peer> peers_;
    Muster muster_;
    std::vector<Shard> shards_;
    BufferId weights_ = no_buffer;  ///< x; lent while it is made
    BufferId motion_ = no_buffer;   ///< v
    std::int64_t cycle_ = -1;
    CyclePlan plan_;
    Stage reduce_ = Stage::done, prepare_ = Stage::done, broadcast_ = Stage::done;
    Broadcast sends_;
    Model sent_;            ///< what is broadcast
    int reduce_group_ = 0;  ///< Membership::number of those among whom is reduced
    bool summed_ = false;
    Making making_ = Making::nothing;
    int making_shard_ = -1;
    ActionId making_id_ = 0;
    double rate_ = 0;  ///< of workers' steps, as they were last told
    std::int64_t exchanges_ = 0, broadcasts_ = 0;
    std::int64_t sends_under_way_ = 0;
    ActionId last_id_ = 0;
    bool stopping_ = false, finished_ = false;
    Status status_ = Status::finished;
};

}  // namespace rubato
