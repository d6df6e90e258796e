#include "core/averaging/gossip_monitor.hpp"

#include "core/averaging/gossip_plan.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace rubato {

GossipMonitor::GossipMonitor(const AverageConfig& config, const ServerState* state)
    : config_(config),
      books_(config.run),
      peers_(static_cast<std::size_t>(config.run.lambda)),
      muster_(config.run.lambda) {
    for (RoleId role = 1; role <= config.run.lambda; ++role) hold(peer(role), has_data(role));
    if (state == nullptr) return;
    books_.restore(*state);
    round_.round = state->joint.rounds;
    last_id_ = state->last_id;
}

void GossipMonitor::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

// All workers have the version that the run begins with, or goes on from, and begin at a word.
void GossipMonitor::on(Time now, const Start& event, Actions& actions) {
    weights_ = event.weights;
    books_.start(now);
    if (config_.run.stop_ns) actions.add<SetTimer>(next_id(), *config_.run.stop_ns);
    if (books_.evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
    for (RoleId role = 1; role <= config_.run.lambda; ++role) {
        ++sends_under_way_;
        actions.send<Exchange>(next_id(), role, Channel::control, {}, -1, books_.rate());
    }
    if (const auto end = books_.end()) begin_stop(*end, actions);  // where it goes on
}

void GossipMonitor::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* push = std::get_if<Push>(&event.message)) {
        take(event.from, *push, actions);
    } else if (const auto* gossip = std::get_if<Gossip>(&event.message)) {
        Peer& to = peer(gossip->to + 1);
        if (muster_.there(gossip->to + 1) && !to.guest && gossip->group >= to.joined) {
            ++to.handed;
            hold(to, true);
        }
    } else if (const auto* exchanged = std::get_if<Exchanged>(&event.message)) {
        hand_in(now, event.from, *exchanged);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        // Of members that are no longer these, maybe.
        if (!averaging_ || summed_ || share->group != mean_group_) {
            BufferId mean = event.payload.buffer;
            let_go(mean, actions);
            return;
        }
        sum_ = {event.payload, *share};
        summed_ = true;
        round_.reduce_end_ns = now;
    } else if (const auto* bye = std::get_if<Bye>(&event.message)) {
        peer(event.from).expected = bye->pushes;
        peer(event.from).bye = true;
        if (bye->cancelled) {
            GradientRow row = unapplied_row(event.from - 1, bye->gradient, Outcome::cancelled);
            row.end_ns = row.push_ns = -1;
            actions.gradients.push_back(row);
        }
    } else {
        throw std::logic_error("a monitor was sent a message that is not for one");
    }
    go_on(now, actions);
}

void GossipMonitor::take(RoleId role, const Push& push, Actions& actions) {
    Peer& from = peer(role);
    from.rows.push_back(unapplied_row(role - 1, push, Outcome::leftover));
    ++from.told;
    books_.look_at(from.rows.back());
    books_.count(from.rows.back());
    if (!stopping_)
        if (const auto end = books_.end()) begin_stop(*end, actions);
}

// It has told of all the steps in what it hands in before it says so.
void GossipMonitor::hand_in(Time now, RoleId role, const Exchanged& said) {
    if (!averaging_ || said.group != mean_group_) return;  // it will once more
    Peer& from = peer(role);
    if (static_cast<std::int64_t>(from.rows.size()) != said.steps)
        throw std::logic_error("a worker has handed in other steps than it has told of");
    from.handed_in = true;
    if (round_.reduce_begin_ns < 0) round_.reduce_begin_ns = std::min(said.begin_ns, now);
    round_.reduce_begin_ns = std::min(round_.reduce_begin_ns, said.begin_ns);
    round_.workers += said.steps > 0;
    round_.steps += said.steps;
    for (const GradientRow& row : from.rows) {
        round_.samples += row.samples;
        if (round_.compute_begin_ns < 0 || row.begin_ns < round_.compute_begin_ns)
            round_.compute_begin_ns = row.begin_ns;
        round_.compute_end_ns = std::max(round_.compute_end_ns, row.end_ns);
    }
    rows_.insert(rows_.end(), from.rows.begin(), from.rows.end());
    from.rows.clear();
}

/// Whether all workers have come to rest, and have told of all that they have done.
bool GossipMonitor::quiet() const {
    return count([](const Peer& it) { return !it.bye || it.told < it.expected; }) == 0;
}

void GossipMonitor::go_on(Time now, Actions& actions) {
    if (finished_) return;
    if (averaging_ && making_ == 0) {
        if (muster_.members().size() == 0 && !summed_)
            end_mean(actions);
        else if (summed_ && count([](const Peer& it) { return !it.handed_in && !it.guest; }) == 0)
            make(now, actions);
    }
    if (averaging_) return;
    if (!stopping_) take_back(actions);
    give_weight(actions);
    if (!stopping_) {
        owed_ = books_.evaluation_due() || owed_;
        if (owed_ && holders_ > 0) begin_mean(actions);
        return;
    }
    if (!last_ && quiet()) {
        last_ = true;
        if (holders_ > 0) return begin_mean(actions);
    }
    try_finish(now, actions);
}

// Of those who have none of the weight there is none: they go on from the last one.
void GossipMonitor::make(Time now, Actions& actions) {
    if (!(sum_.said.weight > 0)) return end_mean(actions);
    if (last_ && muster_.members().number() == 0 && std::abs(sum_.said.weight - 1) > 1e-9)
        throw std::logic_error("a part of the weight is lost");
    round_.prepare_begin_ns = now;
    Mix& mix = actions.add<Mix>();
    mix.id = making_ = next_id();
    mix.work = Mix::Work::update;
    mix.add(sum_.mean.buffer, 1);
    mix.out = std::exchange(weights_, no_buffer);
}

void GossipMonitor::end_mean(Actions& actions) {
    let_go(sum_.mean.buffer, actions);
    begin_anew();
    averaging_ = false;
    owed_ = true;
}

// At the end workers wait for what they have been handed.
void GossipMonitor::begin_mean(Actions& actions) {
    owed_ = false;
    averaging_ = true;
    mean_group_ = muster_.members().number();
    begin_anew();
    muster_.each([&](RoleId role) {
        if (peer(role).guest) return;
        if (last_) return send_stop(role, peer(role).handed, actions);
        ++sends_under_way_;
        actions.send<Exchange>(next_id(), role, Channel::control, {}, 0, books_.rate(), mean_number());
    });
}

void GossipMonitor::on(Time now, const Mixed& event, Actions& actions) {
    if (making_ == 0 || event.id != making_) throw std::logic_error("a mean that the monitor did not ask for");
    making_ = 0;
    weights_ = event.out;
    averaging_ = false;
    let_go(sum_.mean.buffer, actions);
    books_.apply(now, rows_, books_.rate(), actions);
    round_.version = books_.version();
    round_.prepare_end_ns = now;
    actions.rounds.push_back(round_);
    ++round_.round;
    if (!last_) books_.evaluate(now, next_id(), weights_, actions);
    if (!stopping_)
        if (const auto end = books_.end()) begin_stop(*end, actions);
    save_if_due(now, actions);
    end_interrupted(now, actions);
    go_on(now, actions);
}

// What has been done since the last mean is begun anew.
void GossipMonitor::save_if_due(Time now, Actions& actions) {
    if (!books_.save_due(now, stopping_)) return;
    for (const Peer& it : peers_)
        if (!books_.can_leave_out(it.rows)) return;
    ServerState state = books_.state(now, next_id());
    state.joint.rounds = round_.round;
    books_.save(std::move(state), weights_, no_buffer, actions);
}

// What is being made is saved, too.
void GossipMonitor::end_interrupted(Time now, Actions& actions) {
    if (!books_.interrupted() || stopping_ || making_ != 0) return;
    save_if_due(now, actions);
    begin_stop(Status::interrupted, actions);
}

void GossipMonitor::on(Time now, const Saved& event, Actions& actions) {
    books_.on(event);
    go_on(now, actions);
}

void GossipMonitor::on(Time now, const Taken&, Actions& actions) {
    --sends_under_way_;
    go_on(now, actions);
}

void GossipMonitor::on(Time now, const Evaluated& event, Actions& actions) {
    const auto end = books_.on(event, actions);
    if (end && !stopping_) begin_stop(*end, actions);
    go_on(now, actions);
}

void GossipMonitor::on(Time now, const TimerFired&, Actions& actions) {
    if (!stopping_) begin_stop(Status::finished, actions);
    go_on(now, actions);
}

void GossipMonitor::on(Time now, const Interrupted&, Actions& actions) {
    books_.interrupt();
    end_interrupted(now, actions);
    go_on(now, actions);
}

// No more steps. Workers go on to take part in means until the last one.
void GossipMonitor::begin_stop(Status status, Actions& actions) {
    stopping_ = true;
    status_ = status;
    muster_.each([&](RoleId role) { send_stop(role, no_more_steps, actions); });
    dismiss(actions);
}

void GossipMonitor::send_stop(RoleId role, std::int64_t replies, Actions& actions) {
    ++sends_under_way_;
    actions.send<Stop>(next_id(), role, Channel::control, {}, replies, mean_number());
}

void GossipMonitor::leave_over(Actions& actions) {
    for (Peer& it : peers_) {
        JointBooks::leave_over(it.rows, actions);
        it.rows.clear();
    }
    JointBooks::leave_over(rows_, actions);
    rows_.clear();
}

void GossipMonitor::try_finish(Time now, Actions& actions) {
    if (finished_ || !last_ || averaging_ || (sends_under_way_ > 0 && !let_go_)) return;
    if (!std::exchange(let_go_, true)) {
        if (books_.final_evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
        muster_.each([&](RoleId role) {
            if (!peer(role).guest) send_stop(role, leave_run, actions);
        });
    }
    if (sends_under_way_ > 0 || books_.evaluating() || books_.saving() || !quiet()) return;
    leave_over(actions);
    finished_ = true;
    let_go(weights_, actions);
    actions.list.emplace_back(books_.finish(status_));
}

// What it has told of is in the rows; it may have begun one more.
void GossipMonitor::on(Time, const PeerLost& event, Actions& actions) {
    if (peer(event.peer).bye) return;
    books_.state_lost(event.peer - 1, 0, peer(event.peer).told, config_.data, actions);
}

void GossipMonitor::on(Time, const Abandoned& event, Actions& actions) {
    leave_over(actions);
    finished_ = true;
    actions.list.emplace_back(Finish{event.status});
}

template <class Other>
void GossipMonitor::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a monitor is not told of");
}

std::string GossipMonitor::waiting() const {
    if (finished_) return "";
    if (making_ != 0) return "takes the mean of all models as version " + std::to_string(books_.version() + 1);
    if (averaging_)
        return "waits for the mean of all models, for which " +
               std::to_string(count([](const Peer& it) { return it.handed_in; })) + " of " +
               std::to_string(muster_.members().size()) + " workers have handed in theirs";
    if (stopping_ && !last_) return "waits until all workers have come to rest";
    if (stopping_) return "waits for an evaluation, or for the last words of the workers";
    return holders_ == 0 ? "waits for any worker to be back" : "waits for what workers tell of their steps";
}

std::string GossipMonitor::describe() const {
    std::int64_t told = 0;
    for (const Peer& it : peers_) told += it.told;
    return "monitor at version " + std::to_string(books_.version()) + ": " + std::to_string(told) + " steps told of, " +
           std::to_string(books_.accepted()) + " in a mean; " + (finished_ ? "finished" : waiting());
}

}  // namespace rubato
