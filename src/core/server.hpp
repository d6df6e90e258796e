// The parameter server role (Gupta et al. 2015, section 3.2, Rudra-base): owns the version, takes messages strictly one
// at a time in the order of their arrival, and keeps the run's books.
#pragma once

#include "core/action.hpp"
#include "core/assembly.hpp"
#include "core/dealer.hpp"
#include "core/dealt_again.hpp"
#include "core/feed.hpp"
#include "core/policy.hpp"
#include "core/run_state.hpp"
#include "core/saving.hpp"
#include "core/server_config.hpp"
#include "core/vector_clock.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace rubato {

class Server {
public:
    Server(const ServerConfig& config, const DealerConfig& dealer, const Policy& policy);
    /// One that goes on from a saved state of a server with the same settings, but for where it stops and saves. All
    /// workers are new. Evaluations that are pending there end in Evaluated without being asked for again. policy: as
    /// that one was given.
    Server(const ServerConfig& config, const DealerConfig& dealer, const Policy& policy, const ServerState& state);

    void step(Time now, const Event& event, Actions& actions);
    std::string waiting() const;
    std::string describe() const;
    bool finished() const { return finished_; }
    /// What a Save that is under way saves; null: none is.
    const ServerState* saved() const { return saving_.state(); }
    bool operator==(const Server&) const = default;

private:
    /// A message that waits its turn.
    struct Work {
        RoleId from = 0;
        Time arrived_ns = 0;
        Slice payload;
        std::variant<Push, Inquiry, GaveUp, PeerDown, PeerBack, Idle> message;
        bool operator==(const Work&) const = default;
    };
    /// A gradient that is taken in and waits for its update.
    struct Contribution {
        GradientRow row;
        BufferId gradient = no_buffer;  ///< no_buffer once it is folded
        double factor = 1;              ///< of the staleness rule
        Contribution(WorkerId worker, const Push& push, BufferId the_gradient)
            : row(unapplied_row(worker, push, Outcome::applied)), gradient(the_gradient) {}
        bool operator==(const Contribution&) const = default;
    };
    /// What the server knows of a worker.
    struct Peer {
        std::int64_t replies = 0;           ///< sent to it
        std::int64_t pushes = 0;            ///< received from it
        std::int64_t pushes_expected = -1;  ///< said by its Bye
        bool busy = false;                  ///< has a batch whose gradient has not come yet
        bool granted = false;               ///< the policy has let it go on, but a pause holds it
        bool down = false;                  ///< has crashed, and is not back
        bool idle = false;                  ///< got no batch when it could have had one
        bool dealt_ahead = false;           ///< its batch is that of the round, and it has not asked for weights yet
        bool no_batch = false;              ///< shard 0 has none for it
        Time since_ns = 0;                  ///< arrival of its last push, or of the wait without a batch
        std::int32_t unread = 0;            ///< batches since its last pull, that one's included; 0: it pulls next
        std::int64_t dealt = 0;             ///< gradients that it was given a batch for
        Version version = 0;                ///< that it computes on, and the batch: those of the last one
        Batch batch;
        bool operator==(const Peer&) const = default;
    };

    /// Of a worker that is held back. Apart from what every message touches.
    struct Hold {
        Time done_ns = 0;    ///< when its last push was dealt with; not noted where workers inquire
        Time asked_ns = -1;  ///< arrival of an inquiry that the policy holds back; -1: there is none
        Time since_ns = 0;   ///< and since when
        Version have = -1;   ///< that it holds, as said then; -1: none
        bool operator==(const Hold&) const = default;
    };

    /// What a worker was dealt before its last batch, and whose gradient has not come.
    struct Dealt {
        Batch batch;
        Version version = 0;
        bool operator==(const Dealt&) const = default;
    };

    /// A relay that it talks with instead of the workers below.
    struct Branch : Receiver {
        WorkerId end = 0;           ///< of the workers below
        std::vector<Push> records;  ///< of a sum whose payload is to come
        bool operator==(const Branch&) const = default;
    };

    /// Shards: what another one has sent, of which shard 0 is told the most and says when all is over.
    struct Gathering {
        ActionId evaluation = 0;  ///< that it is for; 0: for the end of the run alone
        Version version = 0;
        bool last = false;       ///< of the run
        std::vector<char> came;  ///< by shard
        Assembly whole;
        bool operator==(const Gathering&) const = default;
    };

    void on(Time now, const Start& event, Actions& actions);
    void on(Time now, const Delivered& event, Actions& actions);
    void on(Time now, const Taken& event, Actions& actions);
    void on(Time now, const GradientReady& event, Actions& actions);
    void on(Time now, const Cancelled& event, Actions& actions);
    void on(Time now, const Folded& event, Actions& actions);
    void on(Time now, const Applied& event, Actions& actions);
    void on(Time now, const Evaluated& event, Actions& actions);
    void on(Time now, const Saved& event, Actions& actions);
    void on(Time now, const TimerFired& event, Actions& actions);
    void on(Time now, const Interrupted& event, Actions& actions);
    void on(Time now, const PeerLost& event, Actions& actions);
    void on(Time now, const Abandoned& event, Actions& actions);
    void on(Time now, const Stepped& event, Actions& actions);
    void on(Time now, const Crashed& event, Actions& actions);
    void on(Time now, const Restarted& event, Actions& actions);
    void on(Time now, const PeerDown& event, Actions& actions);
    void on(Time now, const PeerBack& event, Actions& actions);
    void on(Time now, const Placed& event, Actions& actions);
    void on(Time now, const Mixed& event, Actions& actions);
    void on(Time now, const LayerReady& event, Actions& actions);
    void on(Time now, const Summed& event, Actions& actions);

    // server.cpp: messages, one at a time
    /// Deals with a message that has just arrived, or lets it wait its turn.
    template <class M>
    void take_in(Time now, RoleId from, const Slice& payload, const M& message, Actions& actions) {
        if (busy_ || inbox_head_ < inbox_.size())
            inbox_.push_back({from, now, payload, message});
        else
            handle(now, from, now, payload, message, actions);
    }
    /// A gradient of a worker, or the record of one.
    void come(Time now, RoleId role, const Slice& payload, const Push& push, Actions& actions);
    void handle(Time now, RoleId from, Time arrived_ns, const Slice& payload, const Push& push, Actions& actions);
    void handle(Time now, RoleId from, Time arrived_ns, const Slice& payload, const Inquiry& inquiry, Actions& actions);
    void handle(Time now, RoleId from, Time arrived_ns, const Slice& payload, const GaveUp& gave_up, Actions& actions);
    void handle(Time now, RoleId from, Time arrived_ns, const Slice& payload, const PeerDown& down, Actions& actions);
    void handle(Time now, RoleId from, Time arrived_ns, const Slice& payload, const PeerBack& back, Actions& actions);
    void handle(Time now, RoleId from, Time arrived_ns, const Slice& payload, const Idle& idle, Actions& actions);
    void drain(Time now, Actions& actions);
    /// An inquiry whose turn it is. held: a pause has kept it waiting.
    void answer(Time now, RoleId to, Time arrived_ns, Version have, bool held, Actions& actions);
    void deal_to(RoleId to, Peer& worker, bool with_weights, Time held_ns, Time queued_ns, Actions& actions);
    void reply(RoleId to, Peer& worker, const Batch& batch, bool with_weights, Time held_ns, Time queued_ns,
               Actions& actions);
    /// The next batch of a worker: one that is to be dealt again before any other.
    Batch deal(WorkerId worker);
    Peer& peer(RoleId role) { return peers_.at(static_cast<std::size_t>(role - 1)); }
    Hold& hold(RoleId role) { return holds_[static_cast<std::size_t>(role - 1)]; }

    // server_tree.cpp: workers behind relays
    Branch& branch_of(RoleId worker);
    /// Whom a word for a worker goes to.
    RoleId way_to(RoleId worker) { return branches_.empty() ? worker : branch_of(worker).role; }
    /// Which worker it names: none where it goes to the worker itself.
    WorkerId named(RoleId worker) const { return branches_.empty() ? -1 : worker - 1; }
    void reply_below(RoleId to, const Peer& worker, const Batch& batch, bool pulls, Time held_ns, Time queued_ns,
                     Actions& actions);
    /// A record of a sum, or a gradient with the last one.
    void gather(Time now, RoleId from, const Push& push, BufferId gradient, Actions& actions);
    void accept_sum(Time now, const std::vector<Push>& records, BufferId sum, Actions& actions);
    /// Nothing is left to deal, so that sums may never become complete.
    void flush(Actions& actions);
    /// Tells relays with how many gradients a round is complete; idle: workers without one, ascending.
    void tell_round(const std::vector<WorkerId>& idle, Actions& actions);
    void stop_below(Actions& actions);
    /// Gives the present version to those who are given weights unasked.
    void feed_below(Actions& actions);

    // server_shards.cpp: one of several, each with a part of the model
    /// Whether it names the batches: where they come in rounds, or workers draw them, all know them alike; otherwise
    /// shard 0 does.
    bool deals() const { return config_.shard == 0 || traits_.rounds || config_.draw_themselves; }
    /// Calls f(role) with every other shard that owns something.
    template <class F>
    void for_others(F&& f) const {
        for (int shard = 1; shard < config_.shards.used(); ++shard) f(config_.shards.role(shard));
    }
    void on_other(Time now, const Delivered& event, Actions& actions);
    /// Shard 0: the worker gets no batch.
    void tell_idle(WorkerId worker, Actions& actions);
    /// What shard 0 said of a worker takes its turn once all that the worker pushed before has come.
    void take_idle(Time now, WorkerId worker, Actions& actions);
    /// Hands its part to shard 0 where it has what was asked for.
    void answer_first(Actions& actions);
    /// Asks all for their parts; evaluation: for that one.
    void gather(ActionId evaluation, Actions& actions);
    void go_on_gathering(Actions& actions);
    void stop_others(Actions& actions);
    void state(const GradientRow& row, Actions& actions) const {
        if (config_.shards.any()) actions.shards.push_back(shard_row(config_.shard, row));
        if (config_.shard == 0) actions.gradients.push_back(row);
    }

    // server_release.cpp: who may go on
    /// The first word to every worker.
    void begin_workers(Time now, Actions& actions);
    /// A worker and its batch of a round, where workers inquire: only the first word comes unasked. An empty batch: it
    /// has no part in this round.
    void answer_in_round(Time now, RoleId to, const Batch& batch, Actions& actions);
    /// The same as begin_workers to a worker that the policy of a warm start has left; it has heard words before.
    void take_over(Time now, RoleId role, Actions& actions);
    void resume(Time now, Actions& actions);
    /// Does what the policy has ordered. Workers were held back until `until`; what came after was other work.
    void carry_out(Time now, Time until, Actions& actions) {
        if (orders_.any()) carry_out_all(now, until, actions);
    }
    void carry_out_all(Time now, Time until, Actions& actions);
    void release(Time now, RoleId to, Time until, Actions& actions);
    void release_round(Time now, Actions& actions);
    void assign(Peer& worker, const Batch& batch) {
        if (worker.busy && !earlier_.empty()) remember(worker);
        worker.busy = true;
        worker.dealt += gradients_in(batch, config_.batch_size);
        if (worker.unread == 0) worker.version = version_;
        worker.batch = batch;
    }
    std::vector<Dealt>& earlier(const Peer& worker) {
        return earlier_[static_cast<std::size_t>(&worker - peers_.data())];
    }
    void remember(Peer& worker) { earlier(worker).push_back({worker.batch, worker.version}); }
    /// A gradient of its oldest batch has come or will never come.
    void has_come(Peer& worker) {
        if (!earlier_.empty()) return first_has_come(worker);
        worker.busy = false;
    }
    void first_has_come(Peer& worker);
    /// What the worker was dealt, the oldest first, and has not pushed.
    std::vector<Dealt> outstanding(const Peer& worker) const;
    /// The number, within its worker, of the first gradient of its last batch.
    std::int64_t first_seq(const Peer& worker) const {
        return worker.dealt - gradients_in(worker.batch, config_.batch_size);
    }
    void say_ok(Time now, RoleId to, Time until, Time paused_ns, Actions& actions);
    void halt(RoleId to, Actions& actions);
    /// Hardsync takes the place of the policy, in whose words workers are spoken to from the first day.
    void begin_warm_start();
    /// Between two updates: nothing is under way.
    void end_warm_start();
    void expect(ActionId id) const;
    ActionId next_id() { return ++last_id_; }

    // server_peers.cpp: workers that are lost and come back
    /// Has a worker with empty hands, whom the policy takes for one of the others again, go on.
    void restart(Time now, RoleId to, Actions& actions);
    /// Workers that found nothing to compute on have something again.
    void wake_idle(Time now, Actions& actions);

    // server_apply.cpp: gradients become updates
    void accept(Time now, RoleId from, const Push& push, BufferId gradient, Actions& actions);
    void take(Time now, RoleId from, const Push& push, BufferId gradient);
    void fold(Contribution& contribution, Actions& actions);
    void fire(Time now, Actions& actions);
    void emit_rows(Time now, Actions& actions);
    RuleInfo rule_info() const;
    /// Of one update: its rate is the product of the first three.
    struct Rate {
        double scheduled = 0, factor = 1, gain = 1;
        double momentum = -1;  ///< see Step
        bool operator==(const Rate&) const = default;
    };
    Rate rate() const;
    /// Of workers' own steps now; 0 where they take none.
    double local_rate() const;
    /// Samples of the first gradient in a sum, by which the others of it are weighted.
    std::int32_t unit(const GradientRow& row) const { return std::min(row.samples, config_.batch_size); }
    double trend(double before, double staleness, double gradients) const;
    double epoch() const;

    // server_keep.cpp: weights that a staleness rule looks at
    bool keeps() const { return config_.learns && config_.rule.looks_at_weights(); }
    /// A worker is given the present version to compute on.
    void keep_present(Actions& actions);
    /// Lets go of every version that no gradient was computed on which is still to be applied.
    void forget_unread(Actions& actions);

    // server_evaluate.cpp
    void evaluate(Time now, Actions& actions);
    /// An evaluation is due: at once, or, with pause_to_evaluate, when nothing is in flight.
    void evaluation_due(Time now, Actions& actions);
    void try_evaluate(Time now, Actions& actions);
    /// Lets those go on that the pause held back, once its figures are there and no update has the weights.
    void try_end_pause(Time now, Actions& actions);

    // server_save.cpp
    void save_if_due(Time now, Actions& actions);
    void save(Time now, Actions& actions);
    ServerState state(Time now) const;
    Progress progress(Time now) const;

    // server_stop.cpp: the end
    void check_stop(Time now, Actions& actions);
    void begin_stop(Time now, Status status, Actions& actions);
    void on_bye(Time now, RoleId from, const Bye& bye, Actions& actions);
    void leave_over(const GradientRow& row, Actions& actions) const;
    void state_cancelled(WorkerId worker, const Push& begun, Actions& actions) const;
    void try_finish(Time now, Actions& actions);
    void diverge(WorkerId worker, std::int64_t worker_seq, Version version);

    ServerConfig config_;
    Dealer dealer_;
    Policy policy_;
    PolicyTraits traits_;
    bool warm_ = false;      ///< a warm start: policy_ is hardsync
    Policy own_policy_;      ///< and this one follows it
    Orders orders_, doing_;  ///< of the policy, and those of them that are being carried out; empty between steps

    std::vector<Peer> peers_;
    std::vector<Hold> holds_;
    /// By worker, the oldest first; empty where the server has the gradient of a batch before it deals the next.
    std::vector<std::vector<Dealt>> earlier_;
    std::vector<Branch> branches_;  ///< none in a star
    std::vector<Receiver> fed_;     ///< workers, where weights go down a tree of workers
    bool flushed_ = false;
    std::vector<Work> inbox_;  ///< [inbox_head_, end) waits
    std::size_t inbox_head_ = 0;
    ActionId last_id_ = 0;
    ActionId timer_ = 0;
    std::int64_t sends_under_way_ = 0;

    BufferId weights_ = no_buffer;  ///< lent to the driver while an Update is under way
    Version version_ = 0;
    bool busy_ = false;     ///< a Fold or an Update is under way
    ActionId busy_id_ = 0;  ///< which
    BufferId accumulator_ = no_buffer;
    std::vector<Contribution> round_;     ///< taken in, not yet in an update
    std::vector<Contribution> applying_;  ///< in the update under way
    VectorClock clock_;
    Time fired_ns_ = 0;
    Rate rate_;                  ///< of the update under way
    std::vector<Version> kept_;  ///< for the staleness rule, ascending

    std::int64_t accepted_ = 0, accepted_samples_ = 0;
    std::int64_t applied_samples_ = 0;
    double last_mean_staleness_ = 0;
    double staleness_trend_ = 0;  ///< a running mean

    std::vector<PendingEvaluation> evaluations_;  ///< under way
    double next_evaluation_ = 0;                  ///< in epochs
    Version evaluated_ = -1;                      ///< the last version that an evaluation was asked for
    double loss_sum_ = 0;
    std::int64_t loss_count_ = 0;

    /// Pause: workers are held until what is in flight has come, and then until its evaluation is there.
    enum class Pause : std::uint8_t { none, draining, evaluating };
    Pause pause_ = Pause::none;
    std::vector<Work> held_;   ///< inquiries that came meanwhile, and workers that were let go, in their order
    Time round_held_ns_ = -1;  ///< and, under a barrier, the next round: since when; -1: none is held

    /// What was before the first gradient of the present round, for a cut in the middle of it.
    struct Boundary {
        Policy policy;
        double loss_sum = 0;
        std::int64_t loss_count = 0;
        bool operator==(const Boundary&) const = default;
    };
    Boundary boundary_;
    Saving saving_;
    bool resumes_ = false;      ///< made from a saved state, and not yet started
    bool resumed_ = false;      ///< workers hold nothing before their first word
    bool begun_ = false;        ///< the workers have had their first word
    DealtAgain again_;          ///< see ServerState
    bool interrupted_ = false;  ///< a signal came during an update

    std::vector<std::int64_t> idle_after_;  ///< by worker: pushes after which shard 0 says it is idle; empty: of none
    /// Parts that shard 0 has asked for: once the weights are of this version, and whether it is the last time.
    struct Asked {
        Version version = 0;
        bool last = false;
        bool operator==(const Asked&) const = default;
    };
    std::vector<Asked> asked_;
    Version stop_at_ = -1;  ///< shard 0 has ended the run with that version
    bool handed_over_ = false;
    std::vector<Gathering> gatherings_;  ///< under way, the oldest first
    bool gathers_last_ = false;          ///< the last one is begun
    BufferId whole_ = no_buffer;         ///< the final model

    bool stopping_ = false, finished_ = false, diverged_ = false;
    Status status_ = Status::finished;
    Finish finish_;  ///< details of a divergence
    int byes_ = 0;
    int down_ = 0;  ///< workers that are, before their Bye
};

}  // namespace rubato
