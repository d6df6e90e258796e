// What the drivers in real time share: roles in their seats, lanes as threads, and how each action is carried out on
// real buffers.
#pragma once

#include "core/needs.hpp"
#include "core/role.hpp"
#include "exec/emulated_links.hpp"
#include "exec/lane.hpp"
#include "exec/post_office.hpp"
#include "learn/apply.hpp"
#include "learn/pool.hpp"
#include "learn/task.hpp"
#include "trace/checkpoint.hpp"
#include "trace/recorder.hpp"
#include "trace/run_input.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

namespace rubato::exec {

using trace::RunInput;

/// A role with its lanes. Its members belong to the reactor that runs the role, but for those that say otherwise.
struct Seat {
    Role role;
    RoleId id = 0;
    std::vector<std::pair<Time, ActionId>> timers;
    std::mutex role_mutex;            ///< held during a step, so that others can ask waiting()
    std::atomic<ActionId> cancel{0};  ///< the compute lane reads it
    BufferId weights = no_buffer;     ///< last one given by Start or Applied
    Actions actions;
    Time now = 0;
    bool finished = false;
    std::unique_ptr<learn::Workspace> workspace;
    std::unique_ptr<Lane> compute_lane, apply_lane;
    std::unique_ptr<learn::Optimizer> optimizer;  ///< of a worker that takes steps with one
    explicit Seat(Role value) : role(std::move(value)) {}
};

/// Base of one run. Derived drivers bring reactors, mailboxes and the way of messages; the hooks are their part.
class Execution {
protected:
    /// input.task is never null. `backend` is its name in the summary.
    Execution(const RunInput& input, std::string backend);
    virtual ~Execution() = default;

    /// Puts an event into a role's mailbox; called from lanes, too.
    virtual void mail(RoleId role, const Event& event) = 0;
    /// Puts a message on its way that began to move at `sent_ns`; called by the seat's reactor.
    virtual void transmit(Seat& seat, const Send& action, Time sent_ns) = 0;
    /// Starts a sum of all workers by means of its own, where it has some; called by the seat's reactor.
    virtual void add_up(Seat& seat, const SumAll& action);
    /// Has the seat's reactor run `what` (a reactor whose transport is safe for threads may run it at once).
    virtual void later(Seat& seat, std::function<void()> what) = 0;
    /// Updates that the apply lane has computed.
    std::int64_t updates_made() {
        std::lock_guard lock(report_mutex_);
        return server_.updates;
    }
    /// Whether all roles but the server have finished: then evaluations that were put off can begin.
    virtual bool others_finished() const = 0;
    /// For a checkpoint: what the workers have in their books up to `now`, and what was sent beyond report_.
    struct Gathered {
        std::vector<WorkerRow> books;  ///< by worker
        std::int64_t messages = 0, control_messages = 0, bytes = 0, bytes_in = 0;
    };
    /// Calls `then` with them, now or later.
    virtual void gather_books(Time now, std::function<void(Gathered)> then) = 0;
    /// Something cannot go on: wakes whoever waits.
    virtual void wake_all() = 0;

    /// Gives a role a seat, its lanes and its Start on `weights`.
    Seat& seat_role(Role role, RoleId id, BufferId weights);
    /// Those that roles start on; the caller owns a reference.
    BufferId first_weights();
    /// That role 0 starts with, where it goes on from a state that has one.
    BufferId first_trend();
    /// Roles as they begin, or as they were saved.
    std::vector<Role> roles() const {
        return make_roles(scenario_, input_.samples, input_.parameters,
                          input_.resume ? &input_.resume->head.roles : nullptr);
    }
    /// By the clock of the run, when this part of it begins.
    Time start_ns() const;
    /// Ends the lanes; their jobs use seats, office and the derived driver, so its destructor calls this first.
    void close_lanes();

    Time clock() const;
    /// The seat's next timer, if its time has come.
    std::optional<Event> due_timer(Seat& seat) const;
    /// When the next timer of a seat is due, or `none`.
    static Time next_timer(const Seat& seat, Time none);
    void step_role(Seat& seat, const Event& event);
    /// Steps the role and carries out what it asks for.
    void deal_with(Seat& seat, const Event& event);
    void run_deferred();
    /// Remembers the first error and ends the run.
    void fail(std::exception_ptr error);
    /// Steps Abandoned (after `pending`, whose senders know that they are taken); what the role still asks for is not
    /// carried out.
    void abandon(Seat& seat, const std::deque<Event>& pending, Status status);
    bool serves(RoleId role) const { return role == 0 || role > scenario_.lambda(); }
    /// What shards tell and hand over to each other is no traffic with workers, and takes nothing of the cluster.
    bool among_shards(RoleId from, RoleId to) const {
        return scenario_.topology == "sharded" && serves(from) && serves(to);
    }
    /// The totals of a role that serves others; with report_mutex_ held.
    trace::ServerRow& totals(RoleId role) {
        return role <= scenario_.lambda() ? server_ : relays_[static_cast<std::size_t>(role - scenario_.lambda() - 1)];
    }
    /// Of a message, as long as it is or pretends to be.
    std::int64_t payload_bytes(Channel channel, const Slice& payload) const;
    void span(RoleId role, const char* kind, Time begin, Time end, RoleId peer = -1, std::int64_t bytes = 0);

    const RunInput& input_;
    const Scenario& scenario_;
    const Needs needs_;
    std::chrono::steady_clock::time_point begin_;
    PostOffice office_;
    learn::Optimizer optimizer_;
    std::vector<std::unique_ptr<Seat>> seats_;  ///< of this process
    std::atomic<bool> abort_{false};
    std::atomic<std::uint64_t> steps_{0};
    std::atomic<int> working_{0};  ///< jobs on lanes, waiting or running, and saves
    std::mutex report_mutex_;
    trace::DriverReport report_;
    trace::ServerRow server_;
    std::vector<trace::ServerRow> relays_;  ///< of a tree, or shards but the first one, in their order
    std::exception_ptr error_;
    std::vector<Bucket> buckets_;  ///< of protocols by layers
    bool keeps_rows_ = false;      ///< rows that roles state are kept in stated_, for somebody else's recorder
    Actions stated_;
    double patience_s_ = 0;  ///< what a launcher leaves between a signal and the end; 0: no limit

private:
    struct Saving;
    void act(Seat& seat, const Send& action);
    void act(Seat& seat, const Compute& action);
    void act(Seat& seat, const Cancel& action);
    void act(Seat& seat, const Fold& action);
    void act(Seat& seat, const Update& action);
    void act(Seat& seat, const Evaluate& action);
    void act(Seat& seat, const Save& action);
    void act(Seat& seat, const Release& action);
    void act(Seat& seat, const SetTimer& action);
    void act(Seat& seat, const Finish& action);
    /// Starts a message on its way, over emulated links where there are some.
    void dispatch(Seat& seat, const Send& action);
    void act(Seat& seat, const Keep& action);
    void act(Seat& seat, const Forget& action);
    void act(Seat& seat, const LocalStep& action);
    void act(Seat& seat, const Place& action);
    void act(Seat& seat, const Mix& action);
    void act(Seat& seat, const SumAll& action) { add_up(seat, action); }
    void act(Seat& seat, const KeepState& action);
    learn::Optimizer& own_optimizer(Seat& seat);
    /// That of a version's optimizer; forgets those before it.
    std::vector<float> take_kept_state(Version version);
    /// A worker's step with its own optimizer.
    void take_own_step(Seat& seat, const Update& action, BufferId to, learn::UpdateJob job);
    /// Puts a job on a lane; what it throws ends the run.
    void give(Lane& lane, std::function<void()> job);
    /// Waits until `seconds` have passed since `begin`: the rest of what an emulated machine would take.
    void pad(Time begin, double seconds) const;
    double gradient_seconds(Time begin, RoleId role, const Compute& action) const;
    void pad_gradient(Time begin, RoleId role, double seconds) const;
    void tell_layers(Seat& seat, const Compute& action, BufferId gradient, Time begin, double seconds);
    void evaluate_now(RoleId role, const Evaluate& action);

    // execution_save.cpp
    void restore_totals();
    void resume_evaluations(Seat& seat);
    void end_evaluation(const Evaluated& event);
    bool time_to_save(const trace::CheckpointWriter& writer) const;

    std::mutex kept_mutex_;
    std::map<Version, std::vector<float>> kept_states_;  ///< of replicas' optimizers, which are all alike
    std::vector<Evaluate> evaluations_;  ///< of the server, under way, with their weights; its reactor's
    std::mutex deferred_mutex_;
    std::vector<std::pair<RoleId, Evaluate>> deferred_;
    bool timeline_ = false;
    std::unique_ptr<learn::Pool> evaluators_;
    std::unique_ptr<Lane> evaluate_lane_;
    std::unique_ptr<EmulatedLinks> links_;  ///< null: messages take what they take
};

}  // namespace rubato::exec
