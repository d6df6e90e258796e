#include "core/server.hpp"

#include <stdexcept>
#include <utility>

namespace rubato {

Server::Server(const ServerConfig& config, const DealerConfig& dealer, const Policy& policy)
    : config_(config),
      dealer_(dealer),
      policy_(policy),
      traits_(traits(policy)),
      peers_(static_cast<std::size_t>(config.lambda)),
      holds_(peers_.size()),
      saving_(config.checkpoint) {
    if (config.overlaps || !config.tree.star()) earlier_.resize(peers_.size());
    for (const RoleId role : config.tree.top()) branches_.push_back({{role}, config.tree.relay(role).end, {}});
    for (const RoleId role : config.tree.fed_by_root()) fed_.push_back({role});
    if (config.warm_samples > 0) begin_warm_start();
}

Server::Server(const ServerConfig& config, const DealerConfig& dealer, const Policy& policy, const ServerState& state)
    : Server(config, dealer, policy) {
    if (warm_ && state.samples >= config.warm_samples) end_warm_start();
    policy_ = restored(state.policy, policy_);
    dealer_.restore(state.dealer);
    version_ = state.version;
    saving_.resume_from(version_);
    last_id_ = state.last_id;
    accepted_ = state.accepted;
    accepted_samples_ = applied_samples_ = state.samples;
    last_mean_staleness_ = state.mean_staleness;
    staleness_trend_ = state.staleness_trend;
    loss_sum_ = state.loss_sum;
    loss_count_ = state.loss_count;
    next_evaluation_ = state.next_evaluation;
    evaluated_ = state.evaluated;
    evaluations_ = state.evaluations;
    pause_ = static_cast<Pause>(state.pause);
    if (state.diverged) diverge(state.diverged_worker, state.diverged_seq, state.diverged_version);
    for (std::size_t worker = 0; worker < peers_.size(); ++worker) peers_[worker].dealt = state.begun.at(worker);
    again_ = DealtAgain(state.again);
    resumes_ = true;
    resumed_ = true;
}

void Server::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void Server::on(Time now, const Start& event, Actions& actions) {
    weights_ = event.weights;
    if (config_.shards.any() && config_.parameters == 0) {  // nobody has anything to say to it
        actions.add<Release>(std::exchange(weights_, no_buffer));
        finished_ = true;
        actions.list.emplace_back(finish_);
        return;
    }
    if (config_.stop_ns) {
        timer_ = next_id();
        actions.add<SetTimer>(timer_, *config_.stop_ns);
    }
    saving_.start(progress(now));
    if (resumes_) return resume(now, actions);
    if (config_.evaluate_every_epochs) {
        next_evaluation_ = *config_.evaluate_every_epochs;
        evaluation_due(now, actions);
        if (pause_ != Pause::none) return;  // try_end_pause begins
    }
    begin_workers(now, actions);
}

Batch Server::deal(WorkerId worker) {
    return again_.any(worker) ? again_.take(worker) : dealer_.deal(worker);
}

namespace {

/// The worker that a message comes from.
RoleId sender(const Delivered& event, WorkerId worker) {
    return worker < 0 ? event.from : worker + 1;
}

}  // namespace

void Server::come(Time now, RoleId role, const Slice& payload, const Push& push, Actions& actions) {
    auto& from = peer(role);
    ++from.pushes;
    has_come(from);
    from.since_ns = now;
    take_in(now, role, payload, push, actions);
}

void Server::on(Time now, const Delivered& event, Actions& actions) {
    if (config_.shards.any() && (event.from == 0 || event.from > config_.lambda)) return on_other(now, event, actions);
    if (const auto* push = std::get_if<Push>(&event.message)) {
        come(now, sender(event, push->worker), event.payload, *push, actions);
        if (!idle_after_.empty()) take_idle(now, sender(event, push->worker) - 1, actions);
    } else if (const auto* briefs = std::get_if<Briefs>(&event.message)) {
        for (std::int32_t i = 0; i < briefs->count; ++i)
            come(now, briefs->gradients[i].worker + 1, {}, record_of(briefs->gradients[i]), actions);
    } else if (const auto* inquiry = std::get_if<Inquiry>(&event.message)) {
        take_in(now, sender(event, inquiry->worker), event.payload, *inquiry, actions);
    } else if (const auto* gave_up = std::get_if<GaveUp>(&event.message)) {
        const RoleId role = sender(event, gave_up->gradient.worker);
        auto& from = peer(role);
        has_come(from);
        from.since_ns = now;
        take_in(now, role, event.payload, *gave_up, actions);
    } else if (const auto* bye = std::get_if<Bye>(&event.message)) {
        return on_bye(now, sender(event, bye->gradient.worker), *bye, actions);
    } else {
        throw std::logic_error("the server was sent a message that is not for servers");
    }
    if (pause_ == Pause::draining) try_evaluate(now, actions);
    if (stopping_) try_finish(now, actions);
}

// Strictly one at a time: an inquiry that waits behind a gradient is answered with the weights that this gradient made.
void Server::drain(Time now, Actions& actions) {
    while (!busy_ && inbox_head_ < inbox_.size()) {
        const Work work = inbox_[inbox_head_++];
        // What is done is cut off once it is the larger half, so a server that is never idle keeps a bounded inbox.
        if (2 * inbox_head_ >= inbox_.size()) {
            inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(inbox_head_));
            inbox_head_ = 0;
        }
        std::visit(
            [&](const auto& message) { handle(now, work.from, work.arrived_ns, work.payload, message, actions); },
            work.message);
    }
    if (pause_ == Pause::draining) try_evaluate(now, actions);
    try_end_pause(now, actions);
    if (stopping_) try_finish(now, actions);
}

void Server::handle(Time now, RoleId from, Time, const Slice& payload, const Push& push, Actions& actions) {
    if (!stopping_ && branches_.empty()) return accept(now, from, push, payload.buffer, actions);
    if (!stopping_) return gather(now, from, push, payload.buffer, actions);
    leave_over(unapplied_row(from - 1, push, Outcome::leftover), actions);
    if (payload.buffer != no_buffer) actions.add<Release>(payload.buffer);
}

void Server::handle(Time now, RoleId from, Time arrived_ns, const Slice&, const Inquiry& inquiry, Actions& actions) {
    if (stopping_ || peer(from).down) return;  // down: asked before it crashed, and is told when it is back
    if (pause_ != Pause::none)
        held_.push_back({from, arrived_ns, {}, inquiry});
    else
        answer(now, from, arrived_ns, inquiry.have, false, actions);
}

void Server::handle(Time now, RoleId from, Time arrived_ns, const Slice& payload, const GaveUp& gave_up,
                    Actions& actions) {
    state_cancelled(from - 1, gave_up.gradient, actions);
    dealer_.give_back(gave_up.gradient.batch);
    handle(now, from, arrived_ns, payload, Inquiry{gave_up.have}, actions);
}

void Server::answer(Time now, RoleId to, Time arrived_ns, Version have, bool held, Actions& actions) {
    auto& worker = peer(to);
    const Time waited = now - arrived_ns;
    if (config_.draw_themselves && worker.busy)
        return reply(to, worker, {}, have != version_, held ? waited : 0, held ? 0 : waited, actions);
    const bool holds =
        warm_ ? !worker.dealt_ahead : traits_.asks && !worker.granted && on_ready(policy_, to - 1) == Ready::hold;
    if (holds) {
        auto& held_back = hold(to);
        held_back.asked_ns = arrived_ns;
        held_back.since_ns = now;
        held_back.have = have;
        return;
    }
    worker.granted = false;
    deal_to(to, worker, have != version_, held ? waited : 0, held ? 0 : waited, actions);
    if (!worker.busy) carry_out(now, now, actions);  // it got no batch, which may let others go
}

void Server::deal_to(RoleId to, Peer& worker, bool with_weights, Time held_ns, Time queued_ns, Actions& actions) {
    if (worker.dealt_ahead) {
        worker.dealt_ahead = false;
        return reply(to, worker, worker.batch, with_weights, held_ns, queued_ns, actions);
    }
    Batch batch;
    if (deals())
        batch = deal(to - 1);
    else if (!worker.no_batch)  // whichever it is: that is no business of this shard's
        batch.count = config_.batch_size;
    // Nothing left to compute on: the worker hears again when the run ends, or when something is left by a lost one.
    if (batch.count == 0) {
        worker.idle = true;
        if (dealer_.exhausted()) flush(actions);
        if (config_.shards.any()) tell_idle(to - 1, actions);
        return on_idle(policy_, to - 1, orders_);
    }
    assign(worker, batch);
    if (config_.unasked) return;
    reply(to, worker, config_.draw_themselves || !deals() ? Batch{} : batch, with_weights, held_ns, queued_ns, actions);
}

void Server::reply(RoleId to, Peer& worker, const Batch& batch, bool with_weights, Time held_ns, Time queued_ns,
                   Actions& actions) {
    ++worker.replies;
    const bool pulls = worker.unread == 0;
    if (pulls) worker.version = version_;
    if (batch.count > 0) worker.unread = (worker.unread + 1) % config_.communication.pull_every;
    if (batch.count > 0 && keeps()) keep_present(actions);
    if (!branches_.empty()) return reply_below(to, worker, batch, pulls, held_ns, queued_ns, actions);
    ++sends_under_way_;
    if (with_weights && pulls)
        actions.send<Weights>(next_id(), to, Channel::weights, {weights_, config_.first, config_.parameters}, version_,
                              batch, held_ns, queued_ns, local_rate());
    else
        actions.send<Proceed>(next_id(), to, Channel::control, {}, worker.version, batch, held_ns, queued_ns,
                              local_rate(), !pulls);
}

void Server::on(Time now, const Taken& event, Actions& actions) {
    --sends_under_way_;
    if ((!fed_.empty() && was_fed(fed_, event.id)) || (config_.broadcast && was_fed(branches_, event.id)))
        feed_below(actions);
    if (stopping_) try_finish(now, actions);
}

void Server::on(Time now, const TimerFired& event, Actions& actions) {
    if (event.id != timer_ || stopping_) return;
    begin_stop(now, Status::finished, actions);
    if (down_ == config_.lambda) try_finish(now, actions);  // nobody will say Bye
}

void Server::on(Time now, const Interrupted&, Actions& actions) {
    if (finished_) return;
    if (!stopping_ && config_.checkpoint.any()) {
        interrupted_ = !applying_.empty();
        if (interrupted_) return;  // the update that is under way is saved, too
        if (saving_.news(version_)) save(now, actions);
    }
    if (!stopping_) begin_stop(now, Status::interrupted, actions);
    status_ = Status::interrupted;
    if (down_ == config_.lambda) try_finish(now, actions);
}

void Server::on(Time, const GradientReady&, Actions&) {
    throw std::logic_error("a server never computes gradients");
}
void Server::on(Time, const Stepped&, Actions&) {
    throw std::logic_error("a server takes no steps of a worker's own");
}
void Server::on(Time, const Cancelled&, Actions&) {
    throw std::logic_error("a server never computes gradients");
}
void Server::on(Time, const Crashed&, Actions&) {
    throw std::logic_error("a run ends with its server");
}
void Server::on(Time, const Restarted&, Actions&) {
    throw std::logic_error("a run ends with its server");
}

}  // namespace rubato
