#include "sim/run.hpp"

#include "trace/checkpoint.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace rubato::sim {

Run::Run(const RunInput& input, Network& network, const Placement& placement)
    : input_(input),
      scenario_(*input.scenario),
      needs_(needs_of(scenario_)),
      network_(network),
      placement_(placement),
      shards_(make_shards(*input.scenario, input.parameters)),
      elements_(input.parameters > 0 ? input.parameters : input.scenario->cost.push_bytes),
      roles_(make_roles(*input.scenario, input.samples, input.parameters,
                        input.resume ? &input.resume->head.roles : nullptr)),
      seats_(roles_.size()),
      apply_free_ns_(roles_.size()),
      noise_(scenario_, &placement),
      pace_(scenario_),
      fault_role_(static_cast<RoleId>(roles_.size())),
      faults_(scenario_, input.resume ? static_cast<double>(input.resume->head.roles.server.now_ns) * 1e-9 : 0.0),
      transport_(
          network, placement.host_of_role, input.scenario->cluster.network.concurrent_transfers,
          [](void* self, const Flow& flow) { static_cast<Run*>(self)->on_start(flow); }, this, needs_.gradient_slots),
      buffers_(input.task ? input.task->parameters() : 0),
      interrupted_(input.interrupted),
      timeline_(input.recorder != nullptr && input.recorder->wants_timeline()) {
    for (int shard = 0; shard < shards_.count(); ++shard) {
        const CostSpec cost = cost_of(scenario_, shards_, shard);
        const auto& server = scenario_.cluster.server;
        server_seconds_.push_back({server.push(cost), server.pull(cost), server.update(cost)});
    }
    shard_channels_.resize(2 * static_cast<std::size_t>(scenario_.lambda()) *
                           static_cast<std::size_t>(shards_.count() - 1));
    for (const WorkerGroup& group : scenario_.workers.groups) sums_ = sums_ || group.sum_s > 0;
    if (input.task) {
        optimizer_ =
            std::make_unique<learn::Optimizer>(scenario_.optimizer, input.task->parameters(), scenario_.lambda());
        late_ = std::make_unique<learn::LateUpdate>(buffers_, *optimizer_, kept_);
        pool_ = std::make_unique<learn::Pool>(
            *input.task, scenario_.pool_threads, [this](learn::GradientJob& job) { open(job); },
            [this](const learn::GradientJob& job) { late_->run_to(job.updates); });
        late_->share_among(pool_->threads());
    }
    report_.backend = "sim";
    report_.virtual_clock = true;
    servers_.resize(roles_.size() - static_cast<std::size_t>(scenario_.lambda()));
    moving_.resize(servers_.size());
    for (auto& it : servers_) it.receiving_ns = it.sending_ns = 0;
    for (RoleId role = scenario_.lambda() + 1; role < fault_role_; ++role) server(role).role = role;
    if (needs_.layers) buckets_ = make_buckets(scenario_, input.parameters);
    if (input.resume == nullptr) return;
    const auto& head = input.resume->head;
    start_ns_ = head.roles.server.now_ns;
    report_.messages = head.totals.messages;
    report_.control_messages = head.totals.control_messages;
    report_.bytes = head.totals.bytes;
    servers_.front() = head.totals.server;
    for (Time* moving : {&servers_.front().receiving_ns, &servers_.front().sending_ns})
        *moving = std::max<Time>(0, *moving);
    if (optimizer_ && !needs_.replicas) optimizer_->restore(input.resume->velocity);
}

/// Whether to leave gradients of so many samples as factors: as long as nobody has wanted to have one multiplied out,
/// for then others will be, too. What the updates multiply out, the gradients do not, and of updates one waits for the
/// other; so two threads at most gain by it, and those only while the factors of all workers stay in their caches.
bool Run::factors_pay(int count) const {
    constexpr int most_workers = 16;
    const int threads = pool_->threads();
    return (threads == 1 || (threads == 2 && scenario_.lambda() <= most_workers)) && buffers_.multiplied_out() == 0 &&
           input_.task->has_factors(count);
}

void Run::open(learn::GradientJob& job) {
    job.updates = late_->needed_for(job.weights_buffer);
    job.weights = buffers_.data(job.weights_buffer);
    const bool factors = factors_pay(job.batch.count);
    job.factors = factors ? &buffers_.factors(job.gradient_buffer) : nullptr;
    if (!factors) job.gradient = buffers_.data(job.gradient_buffer);
}

trace::DriverReport Run::go() {
    const auto begin = std::chrono::steady_clock::now();
    start_roles();
    plan_faults();
    run_network();
    for (RoleId role = 0; over() && role < fault_role_; ++role)
        if (seats_[static_cast<std::size_t>(role)].down()) hand(role, now_, Abandoned{report_.status});
    if (finished_ < static_cast<int>(roles_.size()) && report_.status == Status::finished) {
        report_.status = Status::deadlock;
        report_.detail = deadlock();
    }
    if (report_.status == Status::deadlock || report_.status == Status::peer_lost) abandon();
    if (report_.status == Status::finished && buffers_.outstanding() != 0)
        throw std::logic_error(std::to_string(buffers_.outstanding()) + " buffers were never released");
    report_.end_ns = now_;
    report_.servers = servers_;
    report_.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return report_;
}

void Run::run_network() {
    if (network_.reach(alarm_ = start_ns_)) on_alarm();
    network_.run(*this);
    // A network has nothing more to do when all wait for a host to be back; its profiles may know better.
    constexpr int in_vain_max = 1000;
    for (int in_vain = 0; in_vain < in_vain_max && !error_ && !ended_; ++in_vain) {
        const Time next = finished_ < static_cast<int>(roles_.size()) && !over() ? network_.next_change() : -1;
        if (next < 0) break;
        const std::uint64_t before = steps_;
        network_.at(alarm_ = next);
        network_.run(*this);
        if (steps_ != before) in_vain = 0;
    }
    if (error_) std::rethrow_exception(error_);
}

void Run::start_roles() {
    const BufferId initial = buffers_.allocate();
    if (input_.task && input_.resume)
        std::ranges::copy(input_.resume->weights, buffers_.data(initial).begin());
    else if (input_.task)
        input_.task->initialize(buffers_.data(initial));
    BufferId trend = no_buffer;
    if (input_.resume && input_.resume->head.roles.server.joint.trend) {
        trend = buffers_.allocate();
        if (input_.task) std::ranges::copy(input_.resume->trend, buffers_.data(trend).begin());
    }
    for (RoleId role = 0; role < static_cast<RoleId>(roles_.size()); ++role)
        complete(role, start_ns_, Start{buffers_.share(initial, -1), role == 0 ? trend : no_buffer});
    buffers_.release(initial);
    if (input_.resume) resume_evaluations();
}

// Those whose figures were not there when the state was saved.
void Run::resume_evaluations() {
    for (const auto& it : input_.resume->head.roles.server.evaluations) {
        Metrics metrics;
        if (input_.task) metrics = input_.task->evaluate(input_.resume->weights_of(it.row.version), *pool_);
        complete(0, start_ns_, Evaluated{it.id, metrics});
    }
}

void Run::on_alarm() {
    // The network's clock may be a double, too coarse for nanoseconds after some weeks: an alarm that rings has come.
    const Time reached = std::max(network_.now(), std::exchange(alarm_, -1));
    guarded([&] { go_on(reached); });
}

// Deals with what is due, one instant after the other, until something of the network's own may come first.
void Run::go_on(Time reached) {
    for (Time due = queue_.next(); due >= 0; due = queue_.next()) {
        if (due > reached) {
            // After a failure what is due already still happens, and nothing later.
            if (due == alarm_ || report_.status == Status::peer_lost) break;
            if (!network_.reach(due)) {
                alarm_ = due;
                return;
            }
            alarm_ = -1;
            reached = due;
        }
        now_ = std::max(now_, due);
        deal_with(due);
        if (finished_ == static_cast<int>(roles_.size()) || over() || ended_) return stop_network();
        if (interrupted_ != nullptr && *interrupted_ && !seats_[0].finished) {
            interrupted_ = nullptr;  // told once
            complete(0, now_, Interrupted{});
        }
    }
    if (report_.status == Status::peer_lost && alarm_ < 0) stop_network();
}

// All events of one nanosecond are gathered before any of them is stepped, so that their order is that of the ties and
// not of whatever produced them. What they cause at once makes a further gathering of the same nanosecond.
void Run::deal_with(Time due) {
    Due* const only = queue_.take(due, batch_);
    const bool looks_ahead = roles_.size() >= look_ahead_from;
    if (looks_ahead) queue_.look_ahead([this](RoleId role) { fetch(role); });
    if (only == nullptr) {
        for (std::size_t i = 0; i < batch_.size(); ++i) {
            if (looks_ahead && i + 4 < batch_.size()) {
                EventQueue::fetch(*batch_[i + 4].due);
                fetch(static_cast<RoleId>(batch_[i + 4].order >> 32));
            }
            const auto& item = batch_[i];
            if (!item.due->cancelled) item.taken ? notify(*item.due) : process(*item.due);
        }
        for (const auto& item : batch_)
            if (!item.taken) queue_.free(*item.due);
        return;
    }
    if (only->cancelled) {
        queue_.free(*only);
        return;
    }
    if (only->sender < 0) {
        process(*only);
    } else if (EventQueue::delivery_first(*only)) {
        process(*only);
        notify(*only);
    } else {
        notify(*only);
        process(*only);
    }
    queue_.free(*only);
}

void Run::on_transfer(std::int64_t token, bool ok) {
    guarded([&] {
        const auto id = static_cast<FlowId>(token);
        const Time now = std::max(now_, network_.now());
        if (ok) {
            queue_.set_present(now);
            deliver(id, now);
            return go_on(-1);
        }
        report_.status = Status::peer_lost;
        report_.detail = failure(id);
        alarm_ = now_ = now;
        if (network_.reach(now_)) on_alarm();
    });
}

void Run::deliver_local(Time now) {
    while (transport_.has_local())
        for (const FlowId local : transport_.take_local()) deliver(local, now);
}

std::string Run::failure(FlowId id) {
    const Flow& flow = transport_[id];
    return "at " + std::to_string(static_cast<double>(network_.now()) / 1e9) + " s a transfer from " +
           with_host(flow.from) + " to " + with_host(flow.to) + " failed: a host or link of its route is off";
}

std::string Run::with_host(RoleId role) const {
    return role_name(role, scenario_) + " on host \"" + host_name(role) + "\"";
}

void Run::deliver(FlowId id, Time now) {
    const Flow& flow = transport_[id];
    auto& due = *flow.due;
    auto& delivered = std::get<Delivered>(due.event);
    const Time at = std::max(now, delivered.started_ns);
    delivered.started_ns = due.taken.started_ns = flow.started_ns;
    due.sender = flow.from;
    if (host_of(flow.from) != host_of(flow.to)) count_moving(flow, now, -1);
    const BufferId sent = delivered.payload.buffer;
    delivered.payload.buffer = buffers_.share(sent, flow.channel_index);
    // What a worker passes on is relayed, too.
    const bool up = flow.channel == Channel::gradient;
    const char* kind = up == serves(flow.from) ? "relay" : up ? "push" : "pull";
    span(flow.from, kind, flow.started_ns, now, flow.to, flow.bytes);
    if (flow.channel == Channel::gradient && needs_.gradients_arrive) forget_crashes();
    if (serves(flow.to)) server(flow.to).bytes_in += static_cast<std::int64_t>(flow.bytes);
    queue_.schedule(due, at, flow.to, flow.from, static_cast<int>(flow.channel));
    release(sent, now);
    transport_.arrived(id, now);
    if (transport_.has_local()) deliver_local(now);
}

void Run::process(Due& due) {
    if (due.to == fault_role_) return on_fault(due);
    if (due.flow >= 0) {
        if (transport_.submit(due.flow, now_)) deliver_local(now_);
        return;
    }
    auto& seat = seats_[static_cast<std::size_t>(due.to)];
    if (crashed_ && seat.finished) {  // what a crash has made superfluous
        if (const auto* delivered = std::get_if<Delivered>(&due.event)) {
            if (delivered->payload.buffer != no_buffer) release(delivered->payload.buffer, now_);
            return;
        }
    }
    if (const auto* layer = std::get_if<LayerReady>(&due.event)) {
        // The computation may have ended earlier than it was to.
        if (seat.compute == nullptr || std::get<GradientReady>(seat.compute->event).id != layer->id) return;
        if (seat.compute->job >= 0) pool_->wait(*jobs_[static_cast<std::size_t>(seat.compute->job)]);
    }
    if (auto* ready = std::get_if<GradientReady>(&due.event)) {
        if (due.job >= 0) {
            auto& job = *jobs_[static_cast<std::size_t>(due.job)];
            pool_->wait(job);
            ready->loss = job.loss;
            free_jobs_.push_back(due.job);
        }
        span(due.to, "compute", ready->begin_ns, ready->end_ns);
        seat.compute = nullptr;
        release(due.weights, now_);
    } else if (std::holds_alternative<TimerFired>(due.event)) {
        std::erase(timers_, std::pair(due.to, &due));
    } else if (due.to == 0) {
        if (const auto* start = std::get_if<Start>(&due.event)) server_weights_ = start->weights;
        if (const auto* applied = std::get_if<Applied>(&due.event)) server_weights_ = applied->weights;
        if (const auto* placed = std::get_if<Placed>(&due.event)) server_weights_ = placed->weights;
    }
    // It may have come to its end in this very nanosecond.
    if (std::holds_alternative<Interrupted>(due.event) && seats_[0].finished) return;
    hand(due.to, now_, due.event);
}

void Run::forget_crashes() {
    if (std::exchange(crashes_in_a_row_, 0) > 0) crashed_in_a_row_.clear();
}

void Run::hand(RoleId role, Time now, const Event& event) {
    if (seats_[static_cast<std::size_t>(role)].finished)
        throw std::logic_error("an event for a role that has finished");
    step(roles_[static_cast<std::size_t>(role)], now, event, actions_);
    const bool stated = actions_.stated();
    const auto is_of_something = [](const UpdateRow& row) { return row.contributors > 0; };
    if (stated && std::ranges::any_of(actions_.updates, is_of_something)) forget_crashes();
    if (input_.recorder != nullptr) input_.recorder->step(now, role, event, actions_, stated);
    if (input_.observer) input_.observer(now, role, event, actions_);
    if (!actions_.list.empty()) execute(role, now);
    if (stated)
        actions_.clear();
    else  // as most steps
        actions_.clear_orders();
    if ((++steps_ & 0x3ff) == 0 && input_.tick) input_.tick();
}

void Run::execute(RoleId role, Time now) {
    // The final weights are hashed before their owner lets go of them.
    if (role == 0 && input_.task && std::holds_alternative<Finish>(actions_.list.back()) &&
        report_.status == Status::finished) {
        late_->run();
        report_.weights_hash = learn::weights_hash(buffers_.data(server_weights_));
    }
    for (const auto& action : actions_.list)
        std::visit([&](const auto& alternative) { act(role, now, alternative); }, action);
}

std::string Run::deadlock() const {
    constexpr int names_max = 4;
    std::string text;
    int named = 0, others = 0;
    // First those that are to blame.
    for (const bool down : {true, false}) {
        for (RoleId role = 0; role < static_cast<RoleId>(roles_.size()); ++role) {
            const Seat& seat = seats_[static_cast<std::size_t>(role)];
            if (seat.down() != down) continue;
            auto what = waiting(roles_[static_cast<std::size_t>(role)]);
            if (what.empty()) continue;
            if (named == names_max) {
                ++others;
                continue;
            }
            if (down) what += " since " + seconds_text(seat.down_ns) + " s";
            if (seat.stalled) what += " on a host whose speed is 0";
            text += (named++ ? "; " : "") + (down || seat.stalled ? with_host(role) : role_name(role, scenario_)) +
                    " " + what;
        }
    }
    return others > 0 ? text + "; and " + std::to_string(others) + " more" : text;
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
