// The server as one of several shards. To workers each is a server of its own; shard 0 also deals the batches, ends the
// run, and has all parts of the model put together where somebody wants to look at it.
#include "core/server.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

void Server::on_other(Time now, const Delivered& event, Actions& actions) {
    if (const auto* idle = std::get_if<Idle>(&event.message)) {
        idle_after_.resize(peers_.size(), -1);
        idle_after_[static_cast<std::size_t>(idle->worker)] = idle->pushes;
        take_idle(now, idle->worker, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        stop_at_ = stop->version;
        check_stop(now, actions);
        if (stopping_) try_finish(now, actions);
    } else if (const auto* inquiry = std::get_if<Inquiry>(&event.message)) {
        asked_.push_back({inquiry->have, stop_at_ >= 0});
        answer_first(actions);
    } else if (std::holds_alternative<Weights>(event.message)) {
        const auto shard = static_cast<std::size_t>(config_.shards.shard_of(event.from));
        const auto mine = std::find_if(gatherings_.begin(), gatherings_.end(),
                                       [&](const Gathering& it) { return it.came[shard] == 0; });
        if (mine == gatherings_.end()) throw std::logic_error("a shard sent its part unasked");
        mine->came[shard] = 1;
        mine->whole.add(event.payload);
        go_on_gathering(actions);
    } else {
        throw std::logic_error("a shard was sent a message that is not for shards");
    }
}

// Where batches come in rounds, or workers draw them, every shard finds out by itself. One that asks ahead still has to
// push what it was dealt.
void Server::tell_idle(WorkerId worker, Actions& actions) {
    if (config_.shard > 0 || traits_.rounds || config_.draw_themselves) return;
    const Peer& its = peer(worker + 1);
    const std::int64_t pushes = its.pushes + static_cast<std::int64_t>(outstanding(its).size());
    for_others([&](RoleId role) {
        ++sends_under_way_;
        actions.send<Idle>(next_id(), role, Channel::control, {}, worker, pushes);
    });
}

void Server::take_idle(Time now, WorkerId worker, Actions& actions) {
    auto& after = idle_after_[static_cast<std::size_t>(worker)];
    if (after < 0 || peer(worker + 1).pushes < after) return;
    const Idle idle{worker, std::exchange(after, -1)};
    take_in(now, worker + 1, {}, idle, actions);
}

// It may wait for its turn here: then it finds no batch when that comes. Otherwise it has weights that it will not use.
void Server::handle(Time now, RoleId from, Time, const Slice&, const Idle& idle, Actions& actions) {
    if (stopping_) return;
    auto& worker = peer(from);
    worker.no_batch = true;
    if (!worker.busy) return;
    worker.busy = false;
    worker.idle = true;
    on_idle(policy_, idle.worker, orders_);
    carry_out(now, now, actions);
}

// The versions of all shards are the same where every one of them applies what the others apply; shard 0 asks for what
// is at least as new as its own, which comes, since everybody is pushed the same gradients.
void Server::answer_first(Actions& actions) {
    while (!asked_.empty() && weights_ != no_buffer && (stopping_ || version_ >= asked_.front().version)) {
        handed_over_ = handed_over_ || asked_.front().last;
        asked_.erase(asked_.begin());
        ++sends_under_way_;
        actions.send<Weights>(next_id(), 0, Channel::weights, {weights_, config_.first, config_.parameters}, version_,
                              Batch{}, Time{0}, Time{0}, 0.0, WorkerId{-1});
    }
}

void Server::gather(ActionId evaluation, Actions& actions) {
    auto& it = gatherings_.emplace_back();
    it.evaluation = evaluation;
    it.version = version_;
    it.last = gathers_last_ = stopping_;
    it.came.assign(static_cast<std::size_t>(config_.shards.count()), 1);
    it.whole.begin_copy(next_id(), weights_, actions);
    for_others([&](RoleId role) {
        it.came[static_cast<std::size_t>(config_.shards.shard_of(role))] = 0;
        ++sends_under_way_;
        actions.send<Inquiry>(next_id(), role, Channel::control, {}, version_);
    });
}

void Server::on(Time now, const Placed& event, Actions& actions) {
    for (auto& it : gatherings_)
        if (it.whole.is_of(event)) {
            it.whole.on(event, actions);
            break;
        }
    go_on_gathering(actions);
    if (stopping_) try_finish(now, actions);
}

void Server::on(Time, const LayerReady&, Actions&) {
    throw std::logic_error("a server never computes gradients");
}
void Server::on(Time, const Summed&, Actions&) {
    throw std::logic_error("a server asks for no sum of all workers");
}
void Server::on(Time, const Mixed&, Actions&) {
    throw std::logic_error("a server that is pushed gradients has nothing to mix");
}

void Server::go_on_gathering(Actions& actions) {
    for (auto& it : gatherings_)
        if (it.whole.waits()) it.whole.place(next_id(), actions);
    std::erase_if(gatherings_, [&](Gathering& it) {
        if (!it.whole.settled() || std::count(it.came.begin(), it.came.end(), 0) > 0) return false;
        if (it.evaluation != 0) actions.add<Evaluate>(it.evaluation, it.whole.weights(), it.version);
        if (it.last)
            whole_ = it.whole.weights();
        else
            it.whole.drop(actions);
        return true;
    });
}

// An update that is under way is one of the run.
void Server::stop_others(Actions& actions) {
    const Version last = version_ + (applying_.empty() ? 0 : 1);
    for_others([&](RoleId role) {
        ++sends_under_way_;
        actions.send<Stop>(next_id(), role, Channel::control, {}, 0, last);
    });
}

}  // namespace rubato
