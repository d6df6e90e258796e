// Who may go on, and for whom others wait.
#include "core/server.hpp"

#include <algorithm>
#include <utility>

namespace rubato {

void Server::begin_workers(Time now, Actions& actions) {
    begun_ = true;
    if (traits_.rounds) return release_round(now, actions);
    const bool first = version_ == 0 || resumed_;
    for (RoleId role = 1; role <= config_.lambda; ++role) {
        if (peer(role).down) continue;
        if (!first) {
            take_over(now, role, actions);
            continue;
        }
        auto& worker = hold(role);
        const bool back = std::exchange(worker.asked_ns, Time{-1}) >= 0;  // from a crash, with empty hands
        if (on_ready(policy_, role - 1) == Ready::start) {
            deal_to(role, peer(role), resumed_ || back, 0, 0, actions);
            continue;
        }
        worker.asked_ns = worker.since_ns = worker.done_ns = now;
        worker.have = resumed_ || back ? -1 : version_;
    }
    carry_out(now, now, actions);
}

// A worker that inquires is answered if it has done so; otherwise it will.
void Server::take_over(Time now, RoleId role, Actions& actions) {
    if (traits_.word == Word::inquiry && hold(role).asked_ns < 0) return;
    if (on_ready(policy_, role - 1) == Ready::start) release(now, role, fired_ns_, actions);
}

void Server::begin_warm_start() {
    const Word word = traits_.word;
    own_policy_ = std::exchange(policy_, Hardsync(config_.lambda));
    traits_ = traits(policy_);
    traits_.word = word;
    dealer_.deal_in_rounds(true);
    warm_ = true;
}

void Server::end_warm_start() {
    policy_ = std::exchange(own_policy_, Policy());
    traits_ = traits(policy_);
    dealer_.deal_in_rounds(traits_.rounds);
    orders_.clear();  // the next round of hardsync
    warm_ = begun_ = false;
}

void Server::resume(Time now, Actions& actions) {
    resumes_ = false;
    fired_ns_ = now;
    for (auto& it : peers_) it.since_ns = now;
    for (auto& it : holds_) it.done_ns = now;
    on_resume(policy_);
    check_stop(now, actions);
    if (stopping_) return try_finish(now, actions);
    if (pause_ == Pause::draining) try_evaluate(now, actions);
    if (pause_ == Pause::none) return begin_workers(now, actions);
    try_end_pause(now, actions);  // or later, when the figures are there
}

// To let a worker go may leave it without a batch, and that may let others go.
void Server::carry_out_all(Time now, Time until, Actions& actions) {
    while (orders_.any() && !stopping_) {
        std::swap(orders_, doing_);
        for (const WorkerId worker : doing_.cancel) halt(worker + 1, actions);
        if (doing_.round) {
            if (pause_ == Pause::none)
                release_round(now, actions);
            else
                round_held_ns_ = now;
        }
        for (const WorkerId worker : doing_.release) release(now, worker + 1, until, actions);
        doing_.clear();
    }
    orders_.clear();
}

void Server::release(Time now, RoleId to, Time until, Actions& actions) {
    auto& worker = peer(to);
    auto& held_back = hold(to);
    const Time asked = std::exchange(held_back.asked_ns, Time{-1});
    if (worker.down) return;  // the policy is told of it in its turn
    if (asked < 0 && traits_.word == Word::ok) return say_ok(now, to, until, 0, actions);
    if (pause_ != Pause::none) {
        worker.granted = true;
        held_.push_back({to, asked < 0 ? held_back.done_ns : asked, {}, Inquiry{asked < 0 ? -1 : held_back.have}});
        return;
    }
    if (asked >= 0)
        return deal_to(to, worker, held_back.have != version_, now - held_back.since_ns, held_back.since_ns - asked,
                       actions);
    const Time held = std::max<Time>(0, until - held_back.done_ns);
    deal_to(to, worker, true, held, now - worker.since_ns - held, actions);
}

// Held back: from when its own push was dealt with until what it waited for had come. The rest is other work.
void Server::say_ok(Time now, RoleId to, Time until, Time paused_ns, Actions& actions) {
    const Time held = std::max<Time>(0, until - hold(to).done_ns) + paused_ns;
    ++sends_under_way_;
    actions.send<Ok>(next_id(), way_to(to), Channel::control, {}, held, now - peer(to).since_ns - held, named(to));
}

// Deals a round and tells the workers.
void Server::release_round(Time now, Actions& actions) {
    if (down_ > 0) return;                // the run ends as soon as the word of it has its turn
    const bool repeat = !again_.empty();  // a round that was dealt, and of which not all was applied
    if (!repeat) dealer_.open_round();
    const bool first = version_ == 0;
    const Time paused = round_held_ns_ >= 0 ? now - round_held_ns_ : 0;
    round_held_ns_ = -1;
    std::vector<WorkerId> without;
    for (RoleId role = 1; role <= config_.lambda; ++role) {
        const Batch batch = !repeat || again_.any(role - 1) ? deal(role - 1) : Batch{};
        const bool empty = batch.count == 0;
        auto& worker = peer(role);
        const Time held = first ? 0 : std::max<Time>(0, fired_ns_ - hold(role).done_ns) + paused;
        const Time queued = first ? 0 : now - worker.since_ns - held;
        if (empty)
            without.push_back(role - 1);
        else
            assign(worker, batch);
        if (traits_.word == Word::inquiry) {
            answer_in_round(now, role, batch, actions);
            continue;
        }
        if (empty && (first || traits_.word == Word::ok || worker.unread > 0)) continue;
        if (empty) worker.since_ns = hold(role).done_ns = now;
        worker.dealt_ahead = traits_.word == Word::ok && !first && !resumed_;
        if (worker.dealt_ahead)
            say_ok(now, role, fired_ns_, paused, actions);
        else
            reply(role, worker, batch, !first, held, queued, actions);
    }
    resumed_ = false;
    if (!without.empty()) tell_round(without, actions);
    if (repeat) return;
    on_round(policy_, config_.lambda - static_cast<int>(without.size()));
    if (static_cast<int>(without.size()) == config_.lambda) return;
    for (const WorkerId worker : without) on_idle(policy_, worker, orders_);
}

void Server::answer_in_round(Time now, RoleId to, const Batch& batch, Actions& actions) {
    auto& worker = peer(to);
    auto& held_back = hold(to);
    const bool spoken_to = version_ > 0 && !resumed_;
    if (!spoken_to && batch.count > 0) return reply(to, worker, batch, resumed_, 0, 0, actions);
    if (!spoken_to) {
        held_back.asked_ns = held_back.since_ns = now;
        held_back.have = resumed_ ? -1 : version_;
    }
    if (batch.count == 0) return;
    worker.dealt_ahead = held_back.asked_ns < 0;
    if (worker.dealt_ahead) return;
    const Time asked = std::exchange(held_back.asked_ns, Time{-1});
    reply(to, worker, batch, held_back.have != version_, now - held_back.since_ns, held_back.since_ns - asked, actions);
}

// One whose gradient has come in the meantime is not told: it will be asked about that gradient.
void Server::halt(RoleId to, Actions& actions) {
    const auto& worker = peer(to);
    if (!worker.busy) return;
    ++sends_under_way_;
    actions.send<Halt>(next_id(), way_to(to), Channel::control, {}, first_seq(worker), named(to));
}

std::string Server::waiting() const {
    if (finished_) return "";
    if (busy_) return "waits for an update of its own to be done";
    if (stopping_ && saving_.under_way()) return "waits for its checkpoint to be written";
    if (stopping_ && config_.shards.any()) {
        if (!gatherings_.empty()) return "waits for other shards' parts of the model";
        if (byes_ == config_.lambda && config_.shard > 0)
            return stop_at_ < 0 ? "waits until shard 0 ends the run"
                                : "waits until shard 0 wants its part of the model";
    }
    const auto worker_name = [](std::size_t worker) { return "worker " + std::to_string(worker); };
    constexpr int names_max = 8;
    std::string who;
    int count = 0;
    for (std::size_t worker = 0; worker < peers_.size(); ++worker) {
        const auto& it = peers_[worker];
        const bool owes = stopping_ ? !it.down && (it.pushes_expected < 0 || it.pushes < it.pushes_expected) : it.busy;
        if (owes && ++count <= names_max) who += (who.empty() ? "" : ", ") + worker_name(worker);
    }
    if (count > names_max) who += " and " + std::to_string(count - names_max) + " more";
    if (count == 0 && stopping_) return "waits for its own messages to be taken";
    std::string text = down_ == config_.lambda ? "waits for any worker to be back"
                       : count == 0            ? "waits for an inquiry of any worker"
                                    : (stopping_ ? "waits for the last word of " : "waits for a gradient of ") + who;
    if (stopping_) return text;
    count = 0;
    for (const auto& it : rubato::waiting(policy_))
        if (++count <= names_max)
            text += (count == 1 ? "; holds back " : ", ") + worker_name(static_cast<std::size_t>(it.worker)) +
                    (it.whom >= 0 ? " for " + worker_name(static_cast<std::size_t>(it.whom)) : "");
    return count > names_max ? text + " and " + std::to_string(count - names_max) + " more" : text;
}

}  // namespace rubato
