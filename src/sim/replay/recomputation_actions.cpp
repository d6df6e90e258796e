// How a recomputation carries out each action.
#include "sim/replay/recomputation.hpp"

#include <utility>

namespace rubato::sim {

void Recomputation::act(RoleId role, const Send& action, const Actions&) {
    if (action.to < 0 || static_cast<std::size_t>(action.to) >= seats_.size())
        throw InconsistentLog(name_of(role) + " sends to a role that the scenario has not");
    if (seat(action.to).down || seat(action.to).finished) return;  // nobody is there
    const BufferId payload = action.payload.buffer;
    channels_[{role, action.to, action.channel}].push_back(
        {action.id, action.message, payload == no_buffer ? no_buffer : buffers_.share(handle(role, payload), -1)});
    if (!seat(action.to).waiting.empty()) awoken_.push_back(action.to);
}

// Nobody knows yet when it will be waited for: those that were asked for first are computed first.
void Recomputation::act(RoleId role, const Compute& action, const Actions&) {
    Computing computing;
    computing.action = action;
    computing.weights = buffers_.share(handle(role, action.weights), -1);
    submit(role, computing);
    seat(role).computing.emplace(action.id, std::move(computing));
}

/// On computing.weights.
void Recomputation::submit(RoleId worker, Computing& computing) {
    computing.gradient = buffers_.allocate();
    computing.job = std::make_unique<learn::GradientJob>();
    auto& job = *computing.job;
    job.weights_buffer = computing.weights;
    job.gradient_buffer = computing.gradient;
    job.worker = worker - 1;
    job.worker_seq = computing.action.worker_seq;
    job.batch = computing.action.batch;
    pool_->submit(job);
}

void Recomputation::act(RoleId role, const Fold& action, const Actions&) {
    const bool first = action.accumulator == no_buffer;
    const BufferId accumulator = first ? buffers_.allocate() : take_over(role, action.accumulator);
    learn::run(learn::resolve(action, accumulator, buffers_, kept_, [&](BufferId id) { return handle(role, id); }),
               optimizer_);
    seat(role).results.emplace(action.id, accumulator);
}

void Recomputation::act(RoleId role, const LocalStep& action, const Actions&) {
    const auto its = [&](BufferId id) { return handle(role, id); };
    const bool first = action.local == no_buffer;
    BufferId local = no_buffer;
    if (action.steps()) local = first ? buffers_.allocate() : its(action.local);
    learn::run(learn::resolve(action, local, buffers_, its));
    if (!first) take_over(role, action.local);
    const BufferId sum = action.sum == no_buffer ? no_buffer : take_over(role, action.sum);
    seat(role).steps.emplace(action.id, std::pair(local, sum));
}

void Recomputation::act(RoleId role, const Place& action, const Actions&) {
    const bool first = action.whole == no_buffer;
    const BufferId whole = first ? buffers_.allocate() : take_over(role, action.whole);
    learn::run(learn::resolve(action, whole, buffers_, [&](BufferId id) { return handle(role, id); }));
    seat(role).results.emplace(action.id, whole);
}

void Recomputation::act(RoleId role, const Mix& action, const Actions&) {
    const auto its = [&](BufferId id) { return handle(role, id); };
    const BufferId from = action.out == no_buffer ? no_buffer : its(action.out);
    const bool in_place = from != no_buffer && buffers_.sole(from);
    const BufferId out = in_place ? from : buffers_.allocate();
    learn::run(learn::resolve(action, out, buffers_, its));
    if (from != no_buffer) take_over(role, action.out);
    if (from != no_buffer && !in_place) buffers_.release(from);
    if (action.work == Mix::Work::update || action.work == Mix::Work::adopt) seat(role).making = action.id;
    seat(role).results.emplace(action.id, out);
}

learn::Optimizer& Recomputation::optimizer_of(RoleId role) {
    if (role == 0 || role > lambda_) return optimizer_;
    auto& own = seat(role).optimizer;
    if (own) return *own;
    own = std::make_unique<learn::Optimizer>(learn::own_optimizer(own_optimizer_, task_.parameters()));
    if (needs_.replicas && options_.resumed != nullptr && options_.keeps_state)
        own->restore(options_.resumed->velocity);
    return *own;
}

void Recomputation::act(RoleId role, const Update& action, const Actions& all) {
    learn::Optimizer& optimizer = optimizer_of(role);
    const BufferId from = take_over(role, action.weights);
    // Whoever else holds the old version (a gradient in computation, a model on its way) goes on reading it.
    const bool in_place = buffers_.sole(from);
    const BufferId to = in_place ? from : buffers_.allocate();
    learn::run(learn::resolve(action, all, buffers_.data(from), buffers_.data(to), buffers_, kept_, optimizer,
                              [&](BufferId id) { return handle(role, id); }),
               optimizer);
    if (!in_place) buffers_.release(from);
    seat(role).results.emplace(action.id, to);
}

void Recomputation::act(RoleId role, const Evaluate& action, const Actions&) {
    if (!options_.evaluate) return;
    evaluate(action, role, buffers_.data(handle(role, action.weights)));
}

void Recomputation::evaluate(const Evaluate& action, RoleId role, std::span<const float> weights) {
    ++evaluations_;
    seat(role).evaluating.emplace(action.id, Evaluating{action, task_.evaluate(weights, *pool_)});
}

void Recomputation::act(RoleId role, const Release& action, const Actions&) {
    auto& buffers = seat(role).buffers;
    const auto it = buffers.find(action.buffer);
    if (it == buffers.end()) throw InconsistentLog(name_of(role) + " releases a buffer that it was never given");
    if (--it->second.count > 0) return;
    buffers_.release(it->second.handle);
    buffers.erase(it);
}

}  // namespace rubato::sim
