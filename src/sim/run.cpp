#include "sim/run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace rubato::sim {

Run::Run(const RunInput& input, Network& network, const Placement& placement)
    : input_(input),
      scenario_(*input.scenario),
      network_(network),
      placement_(placement),
      roles_(make_roles(*input.scenario, input.samples, input.parameters)),
      seats_(roles_.size()),
      noise_(scenario_),
      transport_(
          network, placement.host_of_role, input.scenario->cluster.network.concurrent_transfers,
          [](void* self, const Flow& flow) { static_cast<Run*>(self)->on_start(flow); }, this),
      buffers_(input.task ? input.task->parameters() : 0),
      timeline_(input.recorder != nullptr && input.recorder->wants_timeline()) {
    if (input.task) {
        optimizer_ = std::make_unique<learn::Optimizer>(scenario_.optimizer, input.task->parameters());
        late_ = std::make_unique<learn::LateUpdate>(buffers_, *optimizer_);
        pool_ = std::make_unique<learn::Pool>(*input.task, scenario_.pool_threads, [this](learn::GradientJob& job) {
            late_->run();
            job.weights = buffers_.data(job.weights_buffer);
            job.gradient = buffers_.data(job.gradient_buffer);
        });
    }
    report_.backend = "sim";
    report_.virtual_clock = true;
}

trace::DriverReport Run::go() {
    const auto begin = std::chrono::steady_clock::now();
    start_roles();
    arm();
    network_.run(*this);
    if (error_) std::rethrow_exception(error_);
    if (finished_ < static_cast<int>(roles_.size()) && report_.status == Status::finished) {
        report_.status = Status::deadlock;
        report_.detail = deadlock();
    }
    if (report_.status == Status::deadlock || report_.status == Status::peer_lost) abandon();
    if (report_.status == Status::finished && buffers_.outstanding() != 0)
        throw std::logic_error(std::to_string(buffers_.outstanding()) + " buffers were never released");
    report_.end_ns = now_;
    report_.servers.push_back(server_);
    report_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return report_;
}

void Run::start_roles() {
    const BufferId initial = buffers_.allocate();
    if (input_.task) input_.task->initialize(buffers_.data(initial));
    for (RoleId role = 0; role < static_cast<RoleId>(roles_.size()); ++role)
        complete(role, 0, Start{buffers_.share(initial, -1)});
    buffers_.release(initial);
}

void Run::arm() {
    // After a failure what is due already still happens, and nothing later.
    const Time next = report_.status == Status::peer_lost ? network_.now() : queue_.next();
    if (next < 0 || next == alarm_) return;
    alarm_ = next;
    network_.at(next);
}

// All events of one nanosecond are gathered before any of them is stepped, so that their order is that of the ties and
// not of whatever produced them. What they cause at once makes a further gathering of the same nanosecond.
void Run::on_alarm() {
    // The network's clock may be a double, too coarse for nanoseconds after some weeks: an alarm that rings has come.
    const Time reached = std::max(network_.now(), std::exchange(alarm_, -1));
    try {
        for (Time due = queue_.next(); due >= 0 && due <= std::max(reached, network_.now()) && !error_;
             due = queue_.next()) {
            now_ = std::max(now_, due);
            queue_.take(due, batch_);
            if (roles_.size() >= look_ahead_from) queue_.look_ahead([this](RoleId role) { fetch(role); });
            for (const auto& item : batch_)
                if (!queue_[item.id].cancelled) process(item, now_);
            for (const auto& item : batch_)
                if (!item.taken) queue_.free(item.id);
            if (finished_ == static_cast<int>(roles_.size())) return network_.stop();
            if (!interrupting_ && !seats_[0].finished && input_.interrupted != nullptr && *input_.interrupted) {
                interrupting_ = true;
                complete(0, now_, Interrupted{});
            }
        }
        if (report_.status == Status::peer_lost) return network_.stop();
        arm();
    } catch (...) {
        // Nothing may be thrown through the network's own frames.
        error_ = std::current_exception();
        network_.stop();
    }
}

void Run::on_transfer(std::int64_t token, bool ok) {
    try {
        const auto id = static_cast<FlowId>(token);
        if (!ok) {
            report_.status = Status::peer_lost;
            report_.detail = failure(id);
            now_ = std::max(now_, network_.now());
            return arm();
        }
        const Time now = std::max(now_, network_.now());
        queue_.set_present(now);
        deliver(id, now);
        arm();
    } catch (...) {
        error_ = std::current_exception();
        network_.stop();
    }
}

void Run::deliver_local(Time now) {
    while (transport_.has_local())
        for (const FlowId local : transport_.take_local()) deliver(local, now);
}

std::string Run::failure(FlowId id) {
    const Flow& flow = transport_[id];
    const auto end = [&](RoleId role) {
        const auto host = static_cast<std::size_t>(placement_.host_of_role[static_cast<std::size_t>(role)]);
        return role_name(role) + " on host \"" + network_.hosts()[host].name + "\"";
    };
    return "at " + std::to_string(static_cast<double>(network_.now()) / 1e9) + " s a transfer from " + end(flow.from) +
           " to " + end(flow.to) + " failed: a host or link of its route is off";
}

void Run::deliver(FlowId id, Time now) {
    const Flow& flow = transport_[id];
    auto& due = queue_[flow.due];
    auto& delivered = std::get<Delivered>(due.event);
    delivered.started_ns = due.taken.started_ns = flow.started_ns;
    due.sender = flow.from;
    const BufferId sent = delivered.payload.buffer;
    delivered.payload.buffer = buffers_.share(sent, flow.channel_index);
    span(flow.from, flow.channel == Channel::gradient ? "push" : "pull", flow.started_ns, now, flow.to, flow.bytes);
    if (flow.to == 0) server_.bytes_in += static_cast<std::int64_t>(flow.bytes);
    queue_.schedule(flow.due, now, flow.to, flow.from, static_cast<int>(flow.channel));
    release(sent, now);
    transport_.arrived(id, now);
    if (transport_.has_local()) deliver_local(now);
}

void Run::process(const EventQueue::Item& item, Time now) {
    const DueId id = item.id;
    if (item.taken) return hand(queue_[id].sender, now, queue_[id].taken);
    const RoleId role = queue_[id].to;
    if (const FlowId flow = queue_[id].flow; flow >= 0) {
        if (transport_.submit(flow, now)) deliver_local(now);
        return;
    }
    auto& seat = seats_[static_cast<std::size_t>(role)];
    Event& event = queue_[id].event;  // stays where it is, whatever the step adds to the queue
    if (auto* ready = std::get_if<GradientReady>(&event)) {
        if (const auto job = queue_[id].job; job >= 0) {
            // Not while the pool is locked.
            late_->run(pool_->alone() ? jobs_[static_cast<std::size_t>(job)]->weights_buffer : no_buffer);
            pool_->wait(*jobs_[static_cast<std::size_t>(job)]);
            ready->loss = jobs_[static_cast<std::size_t>(job)]->loss;
            free_jobs_.push_back(job);
        }
        span(role, "compute", ready->begin_ns, ready->end_ns);
        seat.compute = -1;
        release(seat.compute_weights, now);
    } else if (std::holds_alternative<TimerFired>(event)) {
        std::erase(seat.timers, id);
    } else if (const auto* start = std::get_if<Start>(&event)) {
        seat.weights = start->weights;
    } else if (const auto* applied = std::get_if<Applied>(&event)) {
        seat.weights = applied->weights;
    }
    hand(role, now, event);
}

void Run::hand(RoleId role, Time now, const Event& event) {
    if (seats_[static_cast<std::size_t>(role)].finished)
        throw std::logic_error("an event for a role that has finished");
    actions_.clear();
    step(roles_[static_cast<std::size_t>(role)], now, event, actions_);
    if (input_.recorder != nullptr) input_.recorder->step(now, role, event, actions_);
    if (input_.observer) input_.observer(now, role, event, actions_);
    execute(role, now);
    if ((++steps_ & 0x3ff) == 0 && input_.tick) input_.tick();
}

void Run::execute(RoleId role, Time now) {
    // The final weights are hashed before their owner lets go of them.
    if (role == 0 && input_.task && !actions_.list.empty() && std::holds_alternative<Finish>(actions_.list.back()) &&
        report_.status == Status::finished) {
        late_->run();
        report_.weights_hash = learn::weights_hash(buffers_.data(seats_[0].weights));
    }
    for (const auto& action : actions_.list)
        std::visit([&](const auto& alternative) { act(role, now, alternative); }, action);
}

std::string Run::deadlock() const {
    std::string text;
    int named = 0;
    for (RoleId role = 0; role < static_cast<RoleId>(roles_.size()) && named < 4; ++role) {
        const auto what = waiting(roles_[static_cast<std::size_t>(role)]);
        if (what.empty()) continue;
        text += (named++ ? "; " : "") + role_name(role) + " " + what;
    }
    return text;
}

// The roles close their books, so that no gradient is lost with the run.
void Run::abandon() {
    const auto [status, detail] = std::pair(report_.status, report_.detail);
    for (RoleId role = 0; role < static_cast<RoleId>(roles_.size()); ++role)
        if (!seats_[static_cast<std::size_t>(role)].finished) hand(role, now_, Abandoned{status});
    report_.status = status;
    report_.detail = detail;
}

}  // namespace rubato::sim
