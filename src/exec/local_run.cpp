#include "exec/local_run.hpp"

#include <algorithm>

namespace rubato::exec {

LocalRun::LocalRun(const RunInput& input) : Execution(input, "local") {
    const BufferId initial = first_weights();
    for (auto& role : roles()) {
        mailboxes_.push_back(std::make_unique<Mailbox>());
        seat_role(std::move(role), static_cast<RoleId>(seats_.size()), initial);
    }
    office_.release(initial, 0);
}

LocalRun::~LocalRun() {
    abort_ = true;
    wake_all();
    for (auto& mailbox : mailboxes_)
        if (mailbox->reactor.joinable()) mailbox->reactor.join();
    close_lanes();
}

trace::DriverReport LocalRun::go() {
    begin_ = std::chrono::steady_clock::now() - std::chrono::nanoseconds(start_ns());
    for (auto& seat : seats_) mailbox(seat->id).reactor = std::thread([this, it = seat.get()] { reactor(*it); });
    watch();
    for (auto& mailbox : mailboxes_) mailbox->reactor.join();
    if (error_) std::rethrow_exception(error_);
    if (report_.status == Status::stalled) abandon_all();
    if (report_.status == Status::finished && office_.outstanding() != 0)
        throw std::logic_error(std::to_string(office_.outstanding()) + " buffers were never released");
    report_.end_ns = clock();
    report_.wall_s = static_cast<double>(report_.end_ns - start_ns()) * 1e-9;
    report_.messages += office_.messages();
    report_.control_messages += office_.control_messages();
    report_.servers.push_back(server_);
    report_.servers.insert(report_.servers.end(), relays_.begin(), relays_.end());
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
        if (!deferred_done && others_finished()) {
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
    if (abort_) wake_all();
}

void LocalRun::gather_books(Time now, std::function<void(Gathered)> then) {
    Gathered out;
    for (auto& seat : seats_) {
        if (seat->id == 0) continue;
        std::lock_guard lock(seat->role_mutex);
        out.books.push_back(books(seat->role, now));
    }
    office_.locked([&](auto&) {
        out.messages = office_.messages();
        out.control_messages = office_.control_messages();
    });
    then(std::move(out));
}

void LocalRun::wake_all() {
    for (auto& mailbox : mailboxes_) {
        std::lock_guard lock(mailbox->mutex);
        mailbox->wake.notify_all();
    }
}

std::string LocalRun::waiting_text() {
    std::string text;
    int named = 0;
    for (auto& seat : seats_) {
        std::lock_guard lock(seat->role_mutex);
        const auto what = waiting(seat->role);
        if (!what.empty() && named < 4)
            text += (named++ ? "; " : "") + role_name(seat->id, scenario_.lambda()) + " " + what;
    }
    return text;
}

void LocalRun::mail(RoleId role, const Event& event) {
    auto& to = mailbox(role);
    {
        std::lock_guard lock(to.mutex);
        to.events.push_back(event);
    }
    to.wake.notify_one();
}

std::optional<Event> LocalRun::next_event(Seat& seat) {
    auto& from = mailbox(seat.id);
    std::unique_lock lock(from.mutex);
    for (;;) {
        if (abort_) return std::nullopt;
        if (const auto fired = due_timer(seat)) return fired;
        if (!from.events.empty()) {
            const Event event = from.events.front();
            from.events.pop_front();
            return event;
        }
        if (seat.timers.empty())
            from.wake.wait(lock);
        else
            from.wake.wait_until(lock, begin_ + std::chrono::nanoseconds(next_timer(seat, INT64_MAX)));
    }
}

void LocalRun::reactor(Seat& seat) {
    try {
        while (!seat.finished) {
            const auto event = next_event(seat);
            if (!event) return;
            deal_with(seat, *event);
        }
        ++finished_;
    } catch (...) {
        fail(std::current_exception());
    }
}

void LocalRun::abandon_all() {
    for (auto& seat : seats_)
        if (!seat->finished) abandon(*seat, mailbox(seat->id).events, report_.status);
}

trace::DriverReport run_local(const RunInput& input) {
    return LocalRun(input).go();
}

std::vector<trace::Place> local_places(const Scenario& scenario) {
    const auto roles = 1 + static_cast<std::size_t>(scenario.lambda()) + make_tree(scenario).relays().size();
    return std::vector<trace::Place>(roles, {"localhost", "cpu"});
}

}  // namespace rubato::exec
