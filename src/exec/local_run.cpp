#include "exec/local_run.hpp"

#include <algorithm>

namespace rubato::exec {

LocalRun::LocalRun(const RunInput& input)
    : input_(input),
      scenario_(*input.scenario),
      office_(input.task->parameters(), [this](RoleId role, const Event& event) { mail(role, event); }),
      optimizer_(input.scenario->optimizer, input.task->parameters()),
      defer_(!input.scenario->stop.target.has_value()),
      timeline_(input.recorder != nullptr && input.recorder->wants_timeline()) {
    for (auto& role : make_roles(scenario_, input.samples, input.parameters)) {
        seats_.push_back(std::make_unique<Seat>(std::move(role)));
        seats_.back()->id = static_cast<RoleId>(seats_.size()) - 1;
    }
    report_.backend = "local";
    report_.virtual_clock = false;
    // With a target the evaluation competes with the workers for cores, so it keeps to one.
    evaluators_ = std::make_unique<learn::Pool>(*input.task, defer_ ? 0 : 1);
    evaluate_lane_ = std::make_unique<Lane>();
}

LocalRun::~LocalRun() {
    abort_ = true;
    for (auto& seat : seats_) {
        seat->wake.notify_all();
        if (seat->thread.joinable()) seat->thread.join();
    }
    // Lanes last: their jobs use the seats and the office.
    evaluate_lane_.reset();
    for (auto& seat : seats_) {
        seat->compute_lane.reset();
        seat->apply_lane.reset();
    }
}

Time LocalRun::clock() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin_).count();
}

trace::DriverReport LocalRun::go() {
    const BufferId initial = office_.allocate();
    input_.task->initialize(office_.data(initial));
    for (auto& seat : seats_) {
        if (seat->id == 0) {
            seat->apply_lane = std::make_unique<Lane>();
        } else {
            seat->compute_lane = std::make_unique<Lane>();
            seat->workspace = input_.task->workspace();
        }
        mail(seat->id, Start{office_.share(initial)});
    }
    office_.release(initial, 0);
    begin_ = std::chrono::steady_clock::now();
    for (auto& seat : seats_) seat->thread = std::thread([this, it = seat.get()] { reactor(*it); });
    watch();
    for (auto& seat : seats_) seat->thread.join();
    if (error_) std::rethrow_exception(error_);
    if (report_.status == Status::stalled) abandon();
    if (report_.status == Status::finished && office_.outstanding() != 0)
        throw std::logic_error(std::to_string(office_.outstanding()) + " buffers were never released");
    report_.end_ns = clock();
    report_.wall_s = static_cast<double>(report_.end_ns) * 1e-9;
    report_.messages = office_.messages();
    report_.control_messages = office_.control_messages();
    report_.bytes = report_.messages * input_.parameters * static_cast<std::int64_t>(sizeof(float));
    report_.servers.push_back(server_);
    return report_;
}

// The main thread looks after signals, stalls and the evaluations that were put off.
void LocalRun::watch() {
    using namespace std::chrono_literals;
    std::uint64_t seen = 0;
    auto moved = std::chrono::steady_clock::now();
    bool deferred_done = false, interrupting = false;
    while (finished_ < static_cast<int>(seats_.size()) && !abort_) {
        std::this_thread::sleep_for(10ms);
        if (input_.tick) input_.tick();
        if (!deferred_done && finished_ >= static_cast<int>(seats_.size()) - 1) {
            deferred_done = true;
            run_deferred();
        }
        const auto now = std::chrono::steady_clock::now();
        if (steps_ != seen) {
            seen = steps_;
            moved = now;
        }
        if (!interrupting && input_.interrupted != nullptr && *input_.interrupted) {
            interrupting = true;
            mail(0, Interrupted{});
        }
        // A long gradient is no stall.
        if (working_ > 0) moved = now;
        std::lock_guard lock(report_mutex_);
        if (std::chrono::duration<double>(now - moved).count() > scenario_.stall_timeout_s) {
            report_.status = Status::stalled;
            report_.detail = waiting_text();
            abort_ = true;
        }
    }
    if (abort_)
        for (auto& seat : seats_) {
            std::lock_guard lock(seat->mailbox_mutex);
            seat->wake.notify_all();
        }
}

std::string LocalRun::waiting_text() {
    std::string text;
    int named = 0;
    for (auto& seat : seats_) {
        std::lock_guard lock(seat->role_mutex);
        const auto what = waiting(seat->role);
        if (!what.empty() && named < 4) text += (named++ ? "; " : "") + role_name(seat->id) + " " + what;
    }
    return text;
}

void LocalRun::mail(RoleId role, const Event& event) {
    auto& seat = *seats_[static_cast<std::size_t>(role)];
    {
        std::lock_guard lock(seat.mailbox_mutex);
        seat.mailbox.push_back(event);
    }
    seat.wake.notify_one();
}

void LocalRun::give(Lane& lane, std::function<void()> job) {
    ++working_;
    lane.push([this, job = std::move(job)] {
        try {
            job();
        } catch (...) {
            fail(std::current_exception());
        }
        --working_;
    });
}

void LocalRun::fail(std::exception_ptr error) {
    std::lock_guard lock(report_mutex_);
    if (!error_) error_ = error;
    abort_ = true;
}

std::optional<Event> LocalRun::next_event(Seat& seat) {
    std::unique_lock lock(seat.mailbox_mutex);
    for (;;) {
        if (abort_) return std::nullopt;
        const auto due = std::min_element(seat.timers.begin(), seat.timers.end());
        if (due != seat.timers.end() && due->first <= clock()) {
            const TimerFired fired{due->second};
            seat.timers.erase(due);
            return fired;
        }
        if (!seat.mailbox.empty()) {
            const Event event = seat.mailbox.front();
            seat.mailbox.pop_front();
            return event;
        }
        if (due != seat.timers.end())
            seat.wake.wait_until(lock, begin_ + std::chrono::nanoseconds(due->first));
        else
            seat.wake.wait(lock);
    }
}

void LocalRun::step_role(Seat& seat, const Event& event) {
    seat.now = std::max(seat.now, clock());
    seat.actions.clear();
    {
        std::lock_guard lock(seat.role_mutex);
        step(seat.role, seat.now, event, seat.actions);
    }
    if (input_.recorder != nullptr) input_.recorder->step(seat.now, seat.id, event, seat.actions);
    if (input_.observer) input_.observer(seat.now, seat.id, event, seat.actions);
    ++steps_;
}

void LocalRun::reactor(Seat& seat) {
    try {
        while (!seat.finished) {
            const auto event = next_event(seat);
            if (!event) return;
            if (const auto* start = std::get_if<Start>(&*event)) seat.weights = start->weights;
            if (const auto* applied = std::get_if<Applied>(&*event)) seat.weights = applied->weights;
            step_role(seat, *event);
            execute(seat);
        }
        ++finished_;
    } catch (...) {
        fail(std::current_exception());
    }
}

// What lies in a mailbox has been taken, as its sender knows; then the roles close their books, so that no gradient is
// lost with the run. What they still ask for is not carried out.
void LocalRun::abandon() {
    for (auto& seat : seats_) {
        if (seat->finished) continue;
        seat->mailbox.push_back(Abandoned{report_.status});
        for (const Event& event : seat->mailbox) {
            step_role(*seat, event);
            const auto& list = seat->actions.list;
            if (!list.empty() && std::holds_alternative<Finish>(list.back())) break;
        }
    }
}

void LocalRun::execute(Seat& seat) {
    auto& list = seat.actions.list;
    if (seat.id == 0 && !list.empty() && std::holds_alternative<Finish>(list.back()))
        report_.weights_hash = learn::weights_hash(office_.data(seat.weights));
    for (const auto& action : list) std::visit([&](const auto& alternative) { act(seat, alternative); }, action);
}

void LocalRun::span(RoleId role, const char* kind, Time begin, Time end, RoleId peer) {
    if (timeline_) input_.recorder->span({role, kind, begin, end, peer, 0});
}

trace::DriverReport run_local(const RunInput& input) {
    return LocalRun(input).go();
}

std::vector<trace::Place> local_places(const Scenario& scenario) {
    return std::vector<trace::Place>(static_cast<std::size_t>(scenario.lambda()) + 1, {"localhost", "cpu"});
}

}  // namespace rubato::exec
