// One run of the local backend: a reactor thread for each role, a thread for each lane, one post office.
#pragma once

#include "exec/lane.hpp"
#include "exec/local.hpp"
#include "exec/post_office.hpp"
#include "learn/apply.hpp"
#include "learn/pool.hpp"

#include <chrono>
#include <memory>
#include <optional>

namespace rubato::exec {

class LocalRun {
public:
    explicit LocalRun(const RunInput& input);
    ~LocalRun();
    trace::DriverReport go();

private:
    struct Seat {
        Role role;
        RoleId id = 0;
        std::mutex mailbox_mutex;
        std::condition_variable wake;
        std::deque<Event> mailbox;
        std::vector<std::pair<Time, ActionId>> timers;
        std::mutex role_mutex;  ///< held during a step, so that a stall can ask waiting()
        std::atomic<ActionId> cancel{0};
        ActionId compute = 0;
        BufferId weights = no_buffer;  ///< last one given by Start or Applied
        Actions actions;
        Time now = 0;
        bool finished = false;
        std::unique_ptr<learn::Workspace> workspace;
        std::unique_ptr<Lane> compute_lane, apply_lane;
        std::thread thread;
        explicit Seat(Role value) : role(std::move(value)) {}
    };

    Time clock() const;
    void reactor(Seat& seat);
    std::optional<Event> next_event(Seat& seat);
    void step_role(Seat& seat, const Event& event);
    void execute(Seat& seat);
    void mail(RoleId role, const Event& event);
    /// Puts a job on a lane; what it throws ends the run.
    void give(Lane& lane, std::function<void()> job);
    void fail(std::exception_ptr error);
    void watch();
    void abandon();
    Time evaluate_now(RoleId role, const Evaluate& action);
    void run_deferred();
    std::string waiting_text();
    void span(RoleId role, const char* kind, Time begin, Time end, RoleId peer = -1);

    // local_actions.cpp: one member an action
    void act(Seat& seat, const Send& action);
    void act(Seat& seat, const Compute& action);
    void act(Seat& seat, const Cancel& action);
    void act(Seat& seat, const Fold& action);
    void act(Seat& seat, const Update& action);
    void act(Seat& seat, const Evaluate& action);
    void act(Seat& seat, const Release& action);
    void act(Seat& seat, const SetTimer& action);
    void act(Seat& seat, const Finish& action);

    const RunInput& input_;
    const Scenario& scenario_;
    std::chrono::steady_clock::time_point begin_;
    PostOffice office_;
    learn::Optimizer optimizer_;
    std::vector<std::unique_ptr<Seat>> seats_;
    std::atomic<bool> abort_{false};
    std::atomic<std::uint64_t> steps_{0};
    std::atomic<int> finished_{0};
    std::atomic<int> working_{0};  ///< jobs on lanes, waiting or running
    std::mutex report_mutex_;
    trace::DriverReport report_;
    trace::ServerRow server_;
    std::exception_ptr error_;
    std::mutex deferred_mutex_;
    std::vector<std::pair<RoleId, Evaluate>> deferred_;
    bool defer_ = true;
    bool timeline_ = false;
    std::unique_ptr<learn::Pool> evaluators_;
    std::unique_ptr<Lane> evaluate_lane_;
};

}  // namespace rubato::exec
