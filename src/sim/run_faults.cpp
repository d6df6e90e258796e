// What crashes, returns and slows down in a simulated run, by the scenario's plan or by the platform's profiles.
#include "sim/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace rubato::sim {

namespace {

constexpr double time_max_s = 9e9;  ///< virtual time ends before that
/// That many of one worker, between which no gradient has come to the server, are taken for a sign.
constexpr int crashes_in_vain = 100;

/// To what the role that an event is for is given references.
std::array<BufferId, 2> given(const Event& event) {
    return std::visit(
        [](const auto& it) -> std::array<BufferId, 2> {
            if constexpr (requires { it.payload; })
                return {it.payload.buffer, no_buffer};
            else if constexpr (requires { it.gradient; })
                return {it.gradient, no_buffer};
            else if constexpr (requires { it.accumulator; })
                return {it.accumulator, no_buffer};
            else if constexpr (requires { it.weights; })
                return {it.weights, no_buffer};
            else if constexpr (requires { it.out; })
                return {it.out, no_buffer};
            else if constexpr (requires { it.local; })
                return {it.local, it.sum};
            else
                return {no_buffer, no_buffer};
        },
        event);
}

}  // namespace

std::string Run::seconds_text(Time time) {
    return fmt::format("{:.12g}", static_cast<double>(time) / 1e9);
}

void Run::plan_faults() {
    for (auto& unit : faults_.units()) schedule(unit);
}

void Run::schedule(FaultPlan::Unit& unit) {
    const double next_s = FaultPlan::next(unit);
    if (next_s > time_max_s) return;
    const auto index = static_cast<std::int32_t>(&unit - faults_.units().data());
    queue_.complete(std::max(start_ns_, static_cast<Time>(std::llround(next_s * 1e9))), fault_role_).job = index;
}

// Takes its turn after the messages of its time, as what the scenario plans does.
void Run::note(const Change& change) {
    guarded([&] {
        const Time now = std::max({now_, network_.now(), start_ns_});
        changes_.push_back(change);
        queue_.complete(now, fault_role_).job = -static_cast<std::int32_t>(changes_.size()) - 1;
        if (network_.now() >= start_ns_) go_on(-1);
    });
}

void Run::on_fault(const Due& due) {
    if (seats_[0].finished || ended_) return;
    faults_in_a_row_ = steps_ == steps_at_fault_ ? faults_in_a_row_ + 1 : 0;
    if (in_vain(due)) return drop_faults();
    if (due.job >= 0) {
        auto& unit = faults_.units()[static_cast<std::size_t>(due.job)];
        change(unit);
        schedule(unit);
    } else {
        change(changes_[static_cast<std::size_t>(-due.job - 2)]);
    }
    steps_at_fault_ = steps_;
}

// Where nothing but faults happens, nothing else is to come, and none of them brings back or takes a role, the run is
// dead. What profiles of the platform have in store is not known, so they are followed for long.
bool Run::in_vain(const Due& present) {
    constexpr std::uint64_t looks = 1000, in_a_row_max = 100'000;
    if (faults_in_a_row_ == 0 || faults_in_a_row_ % looks != 0 || !transport_.empty()) return false;
    if (faults_in_a_row_ < in_a_row_max && network_.next_change() >= 0) return false;
    const auto helps = [&](const Due& due) {
        return due.to != fault_role_ ||
               (due.job < 0 && changes_[static_cast<std::size_t>(-due.job - 2)].kind != Change::Kind::links);
    };
    bool others = helps(present);
    queue_.each([&](const Due& due) { others = others || helps(due); });
    return !others && std::none_of(faults_.units().begin(), faults_.units().end(),
                                   [this](const FaultPlan::Unit& unit) { return matters(unit); });
}

// None that was to come would help anybody.
void Run::drop_faults() {
    queue_.each([&](Due& due) { queue_.cancel(due); });
}

bool Run::touches(const FaultPlan::Unit& unit, RoleId role) const {
    if (!unit.spec->workers.empty()) return unit.spec->workers[unit.member] + 1 == role;
    return !unit.spec->hosts.empty() && host_name(role) == unit.spec->hosts[unit.member];
}

// Not by one that will not change any more, nor a role that is done, or down for good by another.
bool Run::matters(const FaultPlan::Unit& unit) {
    if (FaultPlan::next(unit) > time_max_s) return false;
    for (RoleId role = 0; role < fault_role_; ++role)
        if (touches(unit, role) && !seats_[static_cast<std::size_t>(role)].finished && !down_for_good(role))
            return true;
    return false;
}

bool Run::down_for_good(RoleId role) {
    return std::any_of(faults_.units().begin(), faults_.units().end(), [&](const FaultPlan::Unit& unit) {
        return unit.broken && unit.end_s == FaultPlan::never && touches(unit, role);
    });
}

void Run::change(const Change& change) {
    if (change.kind == Change::Kind::speed) return set_speed(change.host, change.value);
    if (change.kind == Change::Kind::links) return forget_delays();
    for (RoleId role = 0; role < fault_role_; ++role)
        if (host_of(role) == change.host) break_role(role, change.value == 0);
}

void Run::change(FaultPlan::Unit& unit) {
    faults_.change(unit);
    const FaultSpec& spec = *unit.spec;
    if (!spec.links.empty()) return set_links(unit);
    if (!spec.workers.empty()) return break_role(spec.workers[unit.member] + 1, unit.broken);
    for (RoleId role = 0; role < fault_role_; ++role)
        if (touches(unit, role)) break_role(role, unit.broken);
}

// What it runs on may be broken in several ways at once.
void Run::break_role(RoleId role, bool broken) {
    auto& seat = seats_[static_cast<std::size_t>(role)];
    seat.broken += broken ? 1 : -1;
    if (ended_ || seat.finished || seats_[0].finished) return;
    if (broken && seat.broken == 1) crash(role);
    if (!broken && seat.broken == 0) restart(role);
}

void Run::crash(RoleId role) {
    auto& seat = seats_[static_cast<std::size_t>(role)];
    if (input_.recorder != nullptr) input_.recorder->fault({now_, "crash", role, host_name(role)});
    if (role == 0 || shards_.any() || roles_.size() > static_cast<std::size_t>(scenario_.lambda()) + 1)
        return end_with(role);
    seat.down_ns = now_;
    if (seat.crash_ns < 0) seat.crash_ns = now_;
    ++down_;
    if (seat.compute != nullptr) drop_computation(role);
    crashed_ = true;
    own_optimizers_.erase(role);
    std::vector<Notice> taken;
    std::vector<BufferId> payloads;
    drop_messages(role, taken, payloads);
    transport_.cut(role, now_, [&](const Flow& flow) {
        if (flow.state == Flow::State::moving) count_moving(flow, now_, -1);
        payloads.push_back(std::get<Delivered>(flow.due->event).payload.buffer);
        if (flow.from != role) taken.push_back({flow.from, flow.due->taken});
        queue_.free(*flow.due);
    });
    if (transport_.has_local()) deliver_local(now_);
    for (const BufferId payload : payloads) release(payload, now_);
    hand(role, now_, Crashed{});
    hand(0, now_, PeerDown{role, gradients_begun(roles_[static_cast<std::size_t>(role)])});
    // To its sender a message is gone that nobody will take.
    for (const Notice& each : taken) complete(each.first, now_, each.second);
    const bool often = ++crashed_in_a_row_[role] >= crashes_in_vain;
    ++crashes_in_a_row_;
    const int limit = std::max(10'000, crashes_in_vain * scenario_.lambda());
    // Who gets on may wait for others: where models are averaged, no update is ever made then.
    const bool hopeless = !needs_.gradients_arrive && crashes_in_a_row_ >= 10 * limit;
    if (hopeless || (often && crashes_in_a_row_ >= limit && !anybody_gets_on())) end_in_vain(role);
}

int Run::crashes_in_a_row(RoleId role) const {
    const auto found = crashed_in_a_row_.find(role);
    return found == crashed_in_a_row_.end() ? 0 : found->second;
}

// The others may crash as they like meanwhile, where they have nothing to compute on for instance.
bool Run::anybody_gets_on() {
    for (RoleId role = 1; role < fault_role_; ++role) {
        const auto& seat = seats_[static_cast<std::size_t>(role)];
        if (seat.finished || crashes_in_a_row(role) >= crashes_in_vain) continue;
        if (seat.down() ? !down_for_good(role) : seat.compute != nullptr || transport_.any_of(role)) return true;
    }
    return false;
}

// With gradients that take longer than workers are up the run would go on for ever.
void Run::end_in_vain(RoleId role) {
    const double seconds = seats_[static_cast<std::size_t>(role)].seconds;
    report_.status = Status::deadlock;
    report_.detail = fmt::format("at {} s workers had crashed {} times, and no {} in between: {}", seconds_text(now_),
                                 crashes_in_a_row_, needs_.gradients_arrive ? "gradient had come" : "update was made",
                                 with_host(role)) +
                     (seconds > 0 ? fmt::format(", the last, takes {:.4g} s for one", seconds) : " was the last") +
                     down_for_long();
    stop_network();
}

std::string Run::down_for_long() {
    constexpr int names_max = 4;
    std::string text;
    int count = 0;
    for (RoleId role = 1; role < fault_role_; ++role) {
        const auto& seat = seats_[static_cast<std::size_t>(role)];
        const bool for_long = seat.down() && (crashes_in_a_row(role) < crashes_in_vain || down_for_good(role));
        if (!for_long || ++count > names_max) continue;
        text += "; " + with_host(role) + " is down since " + seconds_text(seat.down_ns) + " s";
    }
    return count > names_max ? text + " and " + std::to_string(count - names_max) + " more" : text;
}

void Run::restart(RoleId role) {
    auto& seat = seats_[static_cast<std::size_t>(role)];
    if (!seat.down()) return;
    if (input_.recorder != nullptr) input_.recorder->fault({now_, "return", role, host_name(role)});
    span(role, "down", seat.down_ns, now_);
    seat.down_ns = -1;
    --down_;
    hand(role, now_, Restarted{});
    hand(0, now_, PeerBack{role});
}

void Run::end_with(RoleId role) {
    report_.status = Status::peer_lost;
    report_.detail = "at " + seconds_text(now_) + " s " + with_host(role) + " crashed, and no run goes on without " +
                     (role == 0       ? "its server"
                      : shards_.any() ? "any of its workers and shards"
                                      : "a part of its tree");
    stop_network();
}

void Run::drop_computation(RoleId role) {
    auto& seat = seats_[static_cast<std::size_t>(role)];
    Due& due = *seat.compute;
    const auto ready = std::get<GradientReady>(due.event);
    if (due.job >= 0) {
        pool_->cancel(*jobs_[static_cast<std::size_t>(due.job)]);
        free_jobs_.push_back(due.job);
    }
    const BufferId weights = due.weights;
    if (seat.stalled)
        queue_.free(due);
    else
        queue_.cancel(due);
    seat.compute = nullptr;
    seat.stalled = false;
    seat.compute_free_ns = now_;
    span(role, "compute", ready.begin_ns, now_);
    release(ready.gradient, now_);
    release(weights, now_);
}

void Run::drop_messages(RoleId role, std::vector<Notice>& taken, std::vector<BufferId>& payloads) {
    queue_.each([&](Due& due) {
        if (due.to == fault_role_) return;
        if (due.flow >= 0) {  // in the apply lane of its sender; the flow itself is the transport's
            const Flow& flow = transport_[due.flow];
            if (flow.to == role || flow.from == role) queue_.cancel(due);
            return;
        }
        if (due.to != role && due.sender != role) return;
        for (const BufferId buffer : given(due.event))
            if (buffer != no_buffer) payloads.push_back(buffer);
        if (due.sender >= 0 && due.sender != role && std::holds_alternative<Delivered>(due.event))
            taken.emplace_back(due.sender, due.taken);
        queue_.cancel(due);
    });
    // The queue is in no order that may show.
    std::sort(taken.begin(), taken.end(), [](const Notice& a, const Notice& b) {
        return std::pair(a.first, a.second.id) < std::pair(b.first, b.second.id);
    });
    std::sort(payloads.begin(), payloads.end());
}

// What is under way goes on at the new speed from here.
void Run::set_speed(HostId host, double factor) {
    if (speed_.empty()) speed_.assign(network_.hosts().size(), 1.0);
    const double before = std::exchange(speed_[static_cast<std::size_t>(host)], factor);
    for (RoleId role = 1; role <= scenario_.lambda(); ++role) {
        auto& seat = seats_[static_cast<std::size_t>(role)];
        if (host_of(role) != host || seat.compute == nullptr) continue;
        Due& old = *seat.compute;
        if (!seat.stalled) seat.left_s = before * pace_.done(role, now_, seat.compute_free_ns);
        const bool stalls = factor <= 0;
        if (!stalls) {
            const double rest_s = pace_.rest(role, now_, seat.left_s / factor);
            seat.compute_free_ns = now_ + static_cast<Time>(std::llround(std::min(rest_s, 4e9) * 1e9));
        }
        Due& due = stalls ? queue_.create() : queue_.complete(seat.compute_free_ns, role);
        due.to = role;
        due.event = old.event;
        due.job = old.job;
        due.weights = old.weights;
        if (!stalls) std::get<GradientReady>(due.event).end_ns = seat.compute_free_ns;
        if (seat.stalled)
            queue_.free(old);
        else
            queue_.cancel(old);
        seat.stalled = stalls;
        seat.compute = &due;
    }
}

void Run::set_links(const FaultPlan::Unit& unit) {
    const std::string& link = unit.spec->links[unit.member];
    double bandwidth = 1, latency = 1;  // of all spells that are under way there
    for (const auto& other : faults_.units()) {
        if (!other.broken || other.spec->links.empty() || other.spec->links[other.member] != link) continue;
        bandwidth *= other.spec->bandwidth_factor;
        latency *= other.spec->latency_factor;
    }
    if (input_.recorder != nullptr) input_.recorder->fault({now_, "link", -1, "", link, bandwidth, latency});
    network_.degrade(link, bandwidth, latency);
    forget_delays();
}

void Run::forget_delays() {
    for (Seat& seat : seats_) seat.to_server.delay_ns = seat.from_server.delay_ns = -1;
    for (ControlChannel& channel : shard_channels_) channel.delay_ns = -1;
    for (auto& [ends, channel] : worker_channels_) channel.delay_ns = -1;
}

}  // namespace rubato::sim
