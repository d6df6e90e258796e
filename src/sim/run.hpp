// One simulated run: the loop over its parts (clock, transport, lanes, buffer pool, recorder).
#pragma once

#include "core/needs.hpp"
#include "learn/late_update.hpp"
#include "learn/pool.hpp"
#include "sim/cost.hpp"
#include "sim/driver.hpp"
#include "sim/event_queue.hpp"
#include "sim/fault_plan.hpp"
#include "sim/noise.hpp"
#include "sim/pace.hpp"
#include "sim/placement.hpp"
#include "sim/transport.hpp"

#include <atomic>
#include <map>
#include <memory>
#include <optional>

namespace rubato::sim {

class Run final : public NetworkSink {
public:
    Run(const RunInput& input, Network& network, const Placement& placement);
    trace::DriverReport go();

    void on_alarm() override;
    void on_transfer(std::int64_t token, bool ok) override;
    void on_host(HostId host, bool on) override { note({Change::Kind::host, host, on ? 1.0 : 0.0}); }
    void on_speed(HostId host, double factor) override { note({Change::Kind::speed, host, factor}); }
    void on_links() override { note({Change::Kind::links, -1, 0}); }

private:
    static constexpr std::size_t look_ahead_from = 500;  ///< roles; fewer stay in the caches anyway

    /// Messages without payload between a worker or a relay and its server, in one direction.
    struct ControlChannel {
        Time free_ns = 0;    ///< last arrival
        Time delay_ns = -1;  ///< of the route; -1: not asked yet
    };
    /// What the driver keeps for each role besides the role itself, and uses at most of its events: a line of memory.
    struct alignas(64) Seat {
        ControlChannel to_server, from_server;  ///< of a worker or a relay
        Time compute_free_ns = 0;               ///< end of the compute lane
        double seconds = 0;                     ///< what the last gradient took without noise,
        std::int32_t batch = 0;                 ///< and its samples
        Due* compute = nullptr;                 ///< the computation under way
        bool finished = false;
        bool stalled = false;  ///< the computation stands still, and is not scheduled,
        double left_s = 0;     ///< with so many seconds of work to do
        int broken = 0;        ///< of what it runs on: it is down while any is
        Time down_ns = -1;     ///< since when; -1: it is not
        Time crash_ns = -1;    ///< first time that it crashed
        bool down() const { return down_ns >= 0; }
    };
    /// What a server is busy with each.
    struct ServerSeconds {
        double push = 0, pull = 0, update = 0;
    };
    /// What the network says of its platform's profiles.
    struct Change {
        enum class Kind : std::uint8_t { host, speed, links };
        Kind kind;
        HostId host;
        double value;
    };

    bool factors_pay(int count) const;
    /// Gives a gradient that is about to be computed its weights and memory.
    void open(learn::GradientJob& job);
    void start_roles();
    void resume_evaluations();
    /// Fetches what an event of the role will touch: with thousands of workers it is in no cache.
    void fetch(RoleId role) const {
        if (role >= fault_role_) return;
        const auto lines = [](const void* from, std::size_t bytes) {
            for (std::size_t line = 0; line < bytes; line += 64)
                __builtin_prefetch(static_cast<const char*>(from) + line, 1);
        };
        lines(&roles_[static_cast<std::size_t>(role)], sizeof(Role));
        lines(&seats_[static_cast<std::size_t>(role)], sizeof(Seat));
        if (role <= scenario_.lambda()) noise_.fetch(role);
        transport_.fetch(role);
    }
    void on_start(const Flow& flow) {
        count_moving(flow, flow.started_ns, 1);
        if (roles_.size() < look_ahead_from) return;
        EventQueue::fetch(*flow.due);
        fetch(lower(flow.from, flow.to));
    }
    /// How long a server's payloads are moving: one begins to (1), or ends (-1).
    void count_moving(const Flow& flow, Time now, int change) {
        if (serves(flow.to)) moving_[server_index(flow.to)].in.count(now, change, server(flow.to).receiving_ns);
        if (serves(flow.from)) moving_[server_index(flow.from)].out.count(now, change, server(flow.from).sending_ns);
    }
    void run_network();
    void stop_network() {
        ended_ = true;
        network_.stop();
    }
    void go_on(Time reached);
    void deal_with(Time due);
    void process(Due& due);
    /// Tells the sender of a message that it is taken.
    void notify(const Due& due) { hand(due.sender, now_, due.taken); }
    /// Nothing may be thrown through the network's own frames.
    template <class F>
    void guarded(F&& call) {
        try {
            call();
        } catch (...) {
            error_ = std::current_exception();
            network_.stop();
        }
    }
    void deliver(FlowId id, Time now);
    void deliver_local(Time now);
    std::string failure(FlowId id);
    const std::string& host_name(RoleId role) const {
        return network_.hosts()[static_cast<std::size_t>(host_of(role))].name;
    }
    /// "worker 3 on host \"h4\"".
    std::string with_host(RoleId role) const;
    /// Whether nothing is left to happen but what helps nobody.
    bool over() const { return seats_[0].finished && finished_ + down_ == static_cast<int>(roles_.size()); }
    void hand(RoleId role, Time now, const Event& event);
    void execute(RoleId role, Time now);

    // run_faults.cpp: what crashes, returns, slows down
    static std::string seconds_text(Time time);
    void plan_faults();
    void schedule(FaultPlan::Unit& unit);
    void note(const Change& change);
    void on_fault(const Due& due);
    bool in_vain(const Due& present);
    void drop_faults();
    bool touches(const FaultPlan::Unit& unit, RoleId role) const;
    /// Whether a role may crash or come back by it.
    bool matters(const FaultPlan::Unit& unit);
    bool down_for_good(RoleId role);
    int crashes_in_a_row(RoleId role) const;
    /// Whether there is one that has not crashed so often and gets on, or will when it is back.
    bool anybody_gets_on();
    void change(const Change& change);
    void change(FaultPlan::Unit& unit);
    void break_role(RoleId role, bool broken);
    void crash(RoleId role);
    void restart(RoleId role);
    /// No run goes on without that role.
    void end_with(RoleId role);
    void end_in_vain(RoleId role);
    void forget_crashes();
    std::string down_for_long();
    /// What is computed comes to nothing.
    void drop_computation(RoleId role);
    using Notice = std::pair<RoleId, Taken>;  ///< to the role
    /// Messages that are scheduled to arrive from or at a role do not. Those of others are added to `taken`, payloads
    /// to `payloads`.
    void drop_messages(RoleId role, std::vector<Notice>& taken, std::vector<BufferId>& payloads);
    void set_speed(HostId host, double factor);
    void set_links(const FaultPlan::Unit& unit);
    void forget_delays();
    /// Of two that talk with each other, the one that is nearer to the workers.
    static RoleId lower(RoleId a, RoleId b) { return std::min(a, b) == 0 ? std::max(a, b) : std::min(a, b); }
    bool serves(RoleId role) const { return role == 0 || role > scenario_.lambda(); }
    /// The totals of a role that serves.
    trace::ServerRow& server(RoleId role) { return servers_[server_index(role)]; }
    std::size_t server_index(RoleId role) const {
        return role == 0 ? 0 : static_cast<std::size_t>(role - scenario_.lambda());
    }
    void tell_layers(RoleId role, ActionId id, BufferId gradient, Time begin, Time end);
    double part_of_replica(RoleId role, std::int64_t count) const;
    /// What shards, or a worker without a server, hand over to be evaluated.
    bool for_evaluation(RoleId role, const Send& action) const {
        return serves(action.to) && (serves(role) ? shards_.any() : needs_.replicas);
    }
    const ServerSeconds& seconds_of(RoleId role) const {
        return server_seconds_.size() == 1 ? server_seconds_.front()
                                           : server_seconds_[static_cast<std::size_t>(shards_.shard_of(role))];
    }
    /// Of a message, as long as its part of the model is.
    std::int64_t bytes_of(bool pushes, const Slice& payload) const {
        const std::int64_t whole = pushes ? scenario_.cost.push_bytes : scenario_.cost.pull_bytes;
        return payload.count > 0 && payload.count < elements_
                   ? part_bytes(whole, {payload.first, payload.count}, elements_)
                   : whole;
    }
    double copy_seconds(const Mix& action) const;
    ControlChannel& control_channel(RoleId from, RoleId to);
    HostId host_of(RoleId role) const { return placement_.host_of_role[static_cast<std::size_t>(role)]; }

    // run_actions.cpp: one member an action
    void act(RoleId role, Time now, const Send& action);
    void act(RoleId role, Time now, const Compute& action);
    void act(RoleId role, Time now, const Cancel& action);
    void act(RoleId role, Time now, const Fold& action);
    void act(RoleId role, Time now, const Update& action);
    void act(RoleId role, Time now, const Evaluate& action);
    void act(RoleId role, Time now, const Save& action);
    void act(RoleId role, Time now, const Release& action);
    void act(RoleId role, Time now, const SetTimer& action);
    void act(RoleId role, Time now, const Finish& action);
    void act(RoleId role, Time now, const Keep& action);
    void act(RoleId role, Time now, const Forget& action);
    void act(RoleId role, Time now, const LocalStep& action);
    void act(RoleId role, Time now, const Place& action);
    void act(RoleId role, Time now, const Mix& action);
    void act(RoleId role, Time now, const KeepState& action);
    learn::Optimizer& own_optimizer(RoleId role);
    [[noreturn]] void act(RoleId, Time, const SumAll&) {
        throw std::logic_error("a simulation has no library that sums");
    }
    /// A worker's step with its own optimizer.
    void step_of_worker(RoleId role, Time now, const Update& action);
    void send_control(RoleId role, Time now, const Send& action);
    /// The completion of an action of `role`, due at `at`.
    template <class E>
    void complete(RoleId role, Time at, E&& event) {
        queue_.complete(at, role).event.emplace<std::decay_t<E>>(std::forward<E>(event));
    }
    Time occupy_apply(RoleId role, Time now, double seconds);
    void release(BufferId buffer, Time now);
    std::string deadlock() const;
    void abandon();
    void span(RoleId role, const char* kind, Time begin, Time end, RoleId peer = -1, double bytes = 0) {
        if (timeline_) input_.recorder->span({role, kind, begin, end, peer, static_cast<std::int64_t>(bytes)});
    }

    const RunInput& input_;
    const Scenario& scenario_;
    const Needs needs_;
    Network& network_;
    const Placement& placement_;
    const Shards shards_;
    std::vector<Bucket> buckets_;                ///< of protocols by layers
    const std::int64_t elements_;                ///< of a model; where there is none, bytes of a gradient message
    std::vector<ServerSeconds> server_seconds_;  ///< one, or by shard
    std::vector<Role> roles_;
    std::vector<Seat> seats_;
    std::vector<ControlChannel> shard_channels_;  ///< to and from shards but the first: [workers][shards - 1][2]
    std::map<std::pair<RoleId, RoleId>, ControlChannel> worker_channels_;  ///< between workers: from, to
    std::vector<Time> apply_free_ns_;                                      ///< ends of the apply lanes, by role
    std::vector<std::pair<RoleId, Due*>> timers_;
    BufferId server_weights_ = no_buffer;  ///< last ones given to role 0
    Noise noise_;
    Pace pace_;
    RoleId fault_role_;  ///< none of a role's: to whom faults are due, after all messages of their time
    FaultPlan faults_;
    std::vector<Change> changes_;        ///< that are due
    std::vector<double> speed_;          ///< by host: factor by the platform's profiles; empty: 1
    int down_ = 0;                       ///< roles that are, and have not finished
    bool crashed_ = false;               ///< some role, once
    std::uint64_t steps_at_fault_ = 0;   ///< steps_ when the last fault happened,
    std::uint64_t faults_in_a_row_ = 0;  ///< and how many did since the last step that was not theirs
    /// Since the server was last given a gradient, or, where models are averaged, an update was last made,
    int crashes_in_a_row_ = 0;
    std::map<RoleId, int> crashed_in_a_row_;  ///< and whose they were
    EventQueue queue_;
    Transport transport_;
    learn::BufferPool buffers_;
    learn::Kept kept_{buffers_};
    std::unique_ptr<learn::Optimizer> optimizer_;
    std::map<Version, std::vector<float>> kept_states_;  ///< of replicas' optimizers, which are all alike
    std::map<RoleId, learn::Optimizer> own_optimizers_;  ///< of workers that take steps with one
    std::unique_ptr<learn::LateUpdate> late_;            ///< the last versions are there once it has run
    std::vector<std::unique_ptr<learn::GradientJob>> jobs_;
    std::vector<std::int32_t> free_jobs_;
    std::unique_ptr<learn::Pool> pool_;  ///< after what its threads work on: a run may end in the middle of a gradient
    std::vector<EventQueue::Item> batch_;  ///< due at one nanosecond
    Actions actions_;
    trace::DriverReport report_;
    std::vector<trace::ServerRow> servers_;  ///< the server's and those of relays
    struct Moving {
        struct Way {
            int now = 0;
            Time since_ns = 0;
            void count(Time at, int change, Time& total_ns) {
                if (now > 0) total_ns += at - since_ns;
                now += change;
                since_ns = at;
            }
        };
        Way in, out;
    };
    std::vector<Moving> moving_;  ///< by server
    Time now_ = 0;
    Time alarm_ = -1;
    Time start_ns_ = 0;  ///< of the part of the run that this is
    int finished_ = 0;
    bool ended_ = false;  ///< nothing happens any more
    std::uint64_t steps_ = 0;
    const std::atomic<bool>* interrupted_;  ///< a signal has come; null once the server has been told
    bool timeline_ = false;
    bool sums_ = false;  ///< some worker takes time to sum up what its devices computed
    std::exception_ptr error_;
};

}  // namespace rubato::sim
