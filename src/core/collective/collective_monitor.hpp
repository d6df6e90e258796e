// Whoever keeps the books of a run without a server: it owns no weights that count, states what workers have told it
// of, evaluates and saves the replica of worker 0, and says when the run ends. Rows of an iteration are stated with the
// version that its gradients make: so what is saved at a version has those before it, and no others.
#pragma once

#include "core/averaging/joint_books.hpp"
#include "core/collective/plan.hpp"
#include "core/dealer.hpp"

#include <map>
#include <string>
#include <vector>

namespace rubato {

struct MonitorConfig {
    ServerConfig run;        ///< rates, where to stop, when to evaluate
    DealerConfig data;       ///< as workers draw their batches
    std::int64_t last = -1;  ///< iterations of the run; -1: it has no such end
    int workers = 0;         ///< that tell of every iteration,
    int buckets = 0;         ///< and of so many buckets each
    bool operator==(const MonitorConfig&) const = default;
};

class CollectiveMonitor {
public:
    /// Goes on from a state, where there is one.
    explicit CollectiveMonitor(const MonitorConfig& config, const ServerState* state = nullptr);

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return finished_; }
    const ServerState* saved() const { return books_.saved(); }
    bool operator==(const CollectiveMonitor&) const = default;

private:
    /// Of a worker.
    struct Peer {
        std::int64_t told = 0;       ///< gradients of the run
        std::int64_t next = 0;       ///< the iteration after that of the last one
        std::int64_t expected = -1;  ///< said by its Bye
        std::int64_t begun = -1;     ///< iterations, where it has said so
        bool bye = false;
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
    void on(Time now, const Abandoned& event, Actions& actions);
    /// Events that it is not told of.
    template <class Other>
    void on(Time now, const Other& event, Actions& actions);

    /// States versions that are made, as far as all is told of them.
    void go_on(Time now, Actions& actions);
    /// All that belongs to what the iteration made has come.
    bool whole(std::int64_t iteration) const;
    void state_version(const Made& made, Actions& actions);
    /// Evaluates and saves the present version, where that is due and its weights are there; false: they are not, or
    /// what comes next belongs to the time after the save.
    bool look_at_version(Time now, Actions& actions);
    void take_model(Actions& actions);
    void drop_models(Actions& actions);
    void save(Time now, Actions& actions);
    /// Those who hold for an evaluation go on. Where the run is about to end they hear of that instead.
    void try_go_onward(Actions& actions);
    /// The run ends as soon as no worker begins an iteration that another one does not.
    void pause(Status status, Actions& actions);
    void try_stop(Actions& actions);
    void try_finish(Time now, Actions& actions);
    Peer& peer(RoleId role) { return peers_.at(static_cast<std::size_t>(role - 1)); }
    template <class M>
    void tell_all(const M& message, Actions& actions) {
        for (RoleId role = 1; role <= config_.run.lambda; ++role) {
            ++sends_under_way_;
            actions.add<Send>(next_id(), role, Channel::control, Message(message), Slice{});
        }
    }
    ActionId next_id() { return ++last_id_; }

    MonitorConfig config_;
    JointBooks books_;
    std::vector<Peer> peers_;
    std::map<std::int64_t, std::vector<GradientRow>> rows_;         ///< by iteration, of which no version is stated
    std::map<std::int64_t, std::vector<IterationRow>> iterations_;  ///< likewise
    std::map<std::int64_t, std::vector<BucketRow>> buckets_;
    std::map<Version, Made> made_;        ///< that are not stated
    std::map<Version, BufferId> models_;  ///< of worker 0, that nobody has looked at
    BufferId weights_ = no_buffer;  ///< of the last version that worker 0 has handed over; lent while it is replaced
    Version weights_version_ = 0;
    bool evaluates_ = false;  ///< the present version is to be, as soon as the model is there
    bool saves_ = false;      ///< likewise
    bool owed_ = false;       ///< an evaluation, of the version at which nothing is in flight
    ActionId taking_ = 0;
    Version taken_version_ = 0;
    std::int64_t last_ = -1;
    bool paused_ = false, stopping_ = false,
         finished_ = false;  ///< stopping_: workers know which iteration is the last
    std::int64_t sends_under_way_ = 0;
    ActionId last_id_ = 0;
    Status status_ = Status::finished;
};

}  // namespace rubato
