#include "sim/replay/recomputation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rubato::sim {
namespace {

Message without_nan(Message message) {
    if (auto* push = std::get_if<Push>(&message); push && std::isnan(push->loss)) push->loss = 0;
    if (auto* bye = std::get_if<Bye>(&message); bye && std::isnan(bye->gradient.loss)) bye->gradient.loss = 0;
    return message;
}

template <class Map>
auto take_from(Map& map, ActionId id, const std::string& who, const char* what) {
    const auto it = map.find(id);
    if (it == map.end())
        throw InconsistentLog(who + ": " + what + " of action " + std::to_string(id) + ", which is not under way");
    auto value = std::move(it->second);
    map.erase(it);
    return value;
}

}  // namespace

bool same_message(const Message& a, const Message& b) {
    return a == b || without_nan(a) == without_nan(b);
}

Recomputation::Recomputation(const Scenario& scenario, const learn::Task& task, const RecomputationOptions& options,
                             RecomputationListener& listener)
    : task_(task),
      own_optimizer_(scenario.optimizer),
      options_(options),
      listener_(listener),
      lambda_(scenario.lambda()),
      sharded_(scenario.topology == "sharded"),
      needs_(needs_of(scenario)),
      seats_(static_cast<std::size_t>(roles_of(scenario))),
      buffers_(task.parameters()),
      optimizer_(scenario.optimizer, task.parameters(), scenario.lambda()),
      pool_(std::make_unique<learn::Pool>(task, options.threads, [this](learn::GradientJob& job) {
          job.weights = buffers_.data(job.weights_buffer);
          job.gradient = buffers_.data(job.gradient_buffer);
      })) {
    initial_ = buffers_.allocate();
    if (options.resumed == nullptr) {
        task.initialize(buffers_.data(initial_));
        return;
    }
    std::ranges::copy(options.resumed->weights, buffers_.data(initial_).begin());
    if (options.keeps_state && !needs_.replicas) optimizer_.restore(options.resumed->velocity);
}

bool Recomputation::ready(RoleId role, const Event& event) const {
    const auto* delivered = std::get_if<Delivered>(&event);
    if (delivered == nullptr || seat(role).abandoned) return true;
    const auto channel = channels_.find({delivered->from, role, delivered->channel});
    return channel != channels_.end() && !channel->second.empty();
}

void Recomputation::take(Time now, RoleId role, const Event& event, const Actions& actions) {
    if (stopped_) return;
    auto& waiting = seat(role).waiting;
    if (!waiting.empty() || !ready(role, event)) {
        waiting.push_back({now, event, actions});
        return;
    }
    carry_out(now, role, event, actions);
    run_waiting();
}

void Recomputation::run_waiting() {
    while (!awoken_.empty() && !stopped_) {
        const RoleId role = awoken_.back();
        auto& waiting = seat(role).waiting;
        if (waiting.empty() || !ready(role, waiting.front().event)) {
            awoken_.pop_back();
            continue;
        }
        const Step step = std::move(waiting.front());
        waiting.pop_front();
        carry_out(step.now, role, step.event, step.actions);
    }
}

void Recomputation::end() {
    const auto count = static_cast<RoleId>(seats_.size());
    for (bool any = true; any && !stopped_;) {
        any = false;
        for (RoleId role = 0; role < count; ++role) {
            if (!send_for_lost(role)) continue;
            any = true;
            awoken_.push_back(role);
            run_waiting();
        }
    }
    if (stopped_) return;
    if (!cut_.empty()) return;
    for (RoleId role = 0; role < count; ++role) {
        const auto& waiting = seat(role).waiting;
        if (waiting.empty()) continue;
        const auto& delivered = std::get<Delivered>(waiting.front().event);
        throw InconsistentLog(name_of(role) + " is delivered a message of " + name_of(delivered.from) +
                              " that nobody sent, at " + std::to_string(waiting.front().now) + " ns");
    }
}

void Recomputation::carry_out(Time now, RoleId role, const Event& event, const Actions& actions) {
    std::visit([&](const auto& alternative) { on(role, alternative); }, event);
    const Actions* const answer = listener_.on_step(now, role, event, actions);
    stopped_ = answer == nullptr;
    if (stopped_ || seat(role).abandoned) return;
    const Actions& wanted = *answer;
    // The final weights are hashed before their owner lets go of them.
    if (role == 0 && !wanted.list.empty() && std::holds_alternative<Finish>(wanted.list.back())) {
        hash_ = weights_hash();
        finished_ = true;
    }
    if (!wanted.list.empty() && std::holds_alternative<Finish>(wanted.list.back())) seat(role).finished = true;
    for (const auto& action : wanted.list)
        std::visit([&](const auto& alternative) { act(role, alternative, wanted); }, action);
}

std::optional<std::uint64_t> Recomputation::weights_hash() {
    const Seat& owner = seat(0);
    if (finished_) return hash_;
    const auto it = owner.buffers.find(owner.weights);
    if (owner.abandoned || it == owner.buffers.end()) return std::nullopt;
    return learn::weights_hash(buffers_.data(it->second.handle));
}

void Recomputation::give(RoleId role, BufferId id, BufferId handle, Version version) {
    auto& held = seat(role).buffers[id];
    // The memory that a role holds already may be given to it anew, with other contents.
    if (held.count > 0) buffers_.release(held.handle);
    held.handle = handle;
    held.version = version;
    ++held.count;
}

BufferId Recomputation::handle(RoleId role, BufferId id) const {
    const auto& buffers = seat(role).buffers;
    const auto it = buffers.find(id);
    if (it == buffers.end())
        throw InconsistentLog(name_of(role) + " uses buffer " + std::to_string(id) + ", which it was never given");
    return it->second.handle;
}

BufferId Recomputation::take_over(RoleId role, BufferId id) {
    const BufferId its = handle(role, id);
    auto& buffers = seat(role).buffers;
    const auto it = buffers.find(id);
    if (--it->second.count > 0)
        buffers_.retain(its);
    else
        buffers.erase(it);
    return its;
}

void Recomputation::on(RoleId role, const Start& event) {
    const auto* resumed = options_.resumed;
    give(role, event.weights, buffers_.share(initial_, -1), resumed ? resumed->head.version() : 0);
    if (event.trend != no_buffer) {
        const BufferId trend = buffers_.allocate();
        std::ranges::copy(options_.resumed->trend, buffers_.data(trend).begin());
        give(role, event.trend, trend);
    }
    seat(role).weights = event.weights;
    if (role == 0 && resumed && options_.evaluate) {
        for (const auto& it : resumed->head.roles.server.evaluations)
            evaluate({it.id, event.weights, it.row.version}, role, resumed->weights_of(it.row.version));
    }
    if (++starts_ == seats_.size()) buffers_.release(initial_);
}

void Recomputation::on(RoleId role, const Delivered& event) {
    if (seat(role).abandoned) return;
    auto& channel = channels_[{event.from, role, event.channel}];
    Sent sent = std::move(channel.front());
    channel.pop_front();
    if (!same_message(sent.message, event.message) || (sent.handle == no_buffer) != (event.payload.buffer == no_buffer))
        throw InconsistentLog(name_of(role) + " is delivered another message than " + name_of(event.from) +
                              " sent it as action " + std::to_string(sent.id));
    const auto* model = std::get_if<Weights>(&sent.message);
    if (sent.handle != no_buffer) give(role, event.payload.buffer, sent.handle, model ? model->version : -1);
    seat(event.from).untaken.push_back(sent.id);
}

void Recomputation::on(RoleId role, const Taken& event) {
    std::erase(seat(role).untaken, event.id);
}

void Recomputation::on(RoleId role, const LayerReady& event) {
    const auto found = seat(role).computing.find(event.id);
    if (found == seat(role).computing.end())
        throw InconsistentLog(name_of(role) + ": layers of action " + std::to_string(event.id) +
                              ", which is not under way");
    if (std::exchange(found->second.given, true)) return;
    pool_->wait(*found->second.job);
    give(role, event.gradient, found->second.gradient);
}

void Recomputation::on(RoleId role, const GradientReady& event) {
    auto computing = take_from(seat(role).computing, event.id, name_of(role), "a gradient");
    pool_->wait(*computing.job);
    ++gradients_;
    buffers_.release(computing.weights);
    if (!computing.given) give(role, event.gradient, computing.gradient);
    listener_.on_gradient(role, computing.action, event, computing.job->loss);
}

void Recomputation::on(RoleId role, const Cancelled& event) {
    const auto computing = take_from(seat(role).computing, event.id, name_of(role), "the end");
    pool_->cancel(*computing.job);
    buffers_.release(computing.weights);
    buffers_.release(computing.gradient);
}

void Recomputation::on(RoleId role, const Folded& event) {
    give(role, event.accumulator, take_from(seat(role).results, event.id, name_of(role), "a sum"));
}

void Recomputation::on(RoleId role, const Applied& event) {
    give(role, event.weights, take_from(seat(role).results, event.id, name_of(role), "an update"));
    seat(role).weights = event.weights;
}

void Recomputation::on(RoleId role, const Placed& event) {
    give(role, event.weights, take_from(seat(role).results, event.id, name_of(role), "a placing"));
    if (role == 0) seat(role).weights = event.weights;
}

void Recomputation::on(RoleId role, const Mixed& event) {
    give(role, event.out, take_from(seat(role).results, event.id, name_of(role), "a mean"));
    if (seat(role).making == event.id) seat(role).weights = event.out;
}

void Recomputation::on(RoleId role, const Stepped& event) {
    const auto [local, sum] = take_from(seat(role).steps, event.id, name_of(role), "a step");
    if (local != no_buffer) give(role, event.local, local);
    if (sum != no_buffer) give(role, event.sum, sum);
}

void Recomputation::on(RoleId role, const Evaluated& event) {
    if (!options_.evaluate) return;
    const auto evaluating = take_from(seat(role).evaluating, event.id, name_of(role), "figures");
    listener_.on_evaluated(role, evaluating.action, event, evaluating.metrics);
}

void Recomputation::on(RoleId role, const Abandoned&) {
    auto& its = seat(role);
    its.abandoned = true;
    for (auto& [id, computing] : its.computing) pool_->cancel(*computing.job);
    its.computing.clear();
}

void Recomputation::on(RoleId role, const Restarted&) {
    seat(role).down = false;
}

// What was on its way from or to it arrives nowhere.
void Recomputation::on(RoleId role, const Crashed&) {
    auto& its = seat(role);
    for (auto& [id, computing] : its.computing) {
        pool_->cancel(*computing.job);
        buffers_.release(computing.weights);
        buffers_.release(computing.gradient);
    }
    its.computing.clear();
    for (const auto& [id, step] : its.steps)
        for (const BufferId each : {step.first, step.second})
            if (each != no_buffer) buffers_.release(each);
    its.steps.clear();
    for (const auto& [id, result] : its.results) buffers_.release(result);
    its.results.clear();
    its.optimizer.reset();
    its.down = true;
    its.untaken.clear();
    for (auto& [key, sent] : channels_) {
        if (std::get<0>(key) != role && std::get<1>(key) != role) continue;
        for (const Sent& each : sent)
            if (each.handle != no_buffer) buffers_.release(each.handle);
        sent.clear();
    }
}

}  // namespace rubato::sim
