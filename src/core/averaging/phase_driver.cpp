#include "core/averaging/phase_driver.hpp"

#include <algorithm>
#include <stdexcept>

namespace rubato {

std::vector<Range> phase_parts(const Scenario& scenario, std::int64_t parameters) {
    const PhasesSpec& phases = scenario.protocol.averaging.phases;
    const std::int64_t total = parameters > 0 ? parameters : scenario.cost.push_bytes;
    if (!phases.sizes.empty()) return proportional_ranges(phases.sizes, total);
    std::vector<Range> parts = phases.by_layers && !scenario.layers.empty()
                                   ? layer_ranges(scenario.layers, total, phases.shards)
                                   : even_ranges(total, phases.shards);
    std::erase_if(parts, [](const Range& part) { return part.count == 0; });
    return parts;
}

PhaseDriver::PhaseDriver(const PhaseConfig& config, const ServerState* state)
    : config_(config),
      books_(config.run),
      peers_(static_cast<std::size_t>(config.run.lambda)),
      muster_(config.run.lambda),
      shards_(config.parts.size()) {
    if (static_cast<int>(config.parts.size()) < config.phases.phases)
        throw std::invalid_argument("a phase of the driver would have no shard of its own");
    if (state == nullptr) return;
    books_.restore(*state);
    cycle_ = state->joint.rounds - 1;
    last_id_ = state->last_id;
    for (std::size_t number = 0; number < shards_.size(); ++number)
        shards_[number].means = state->joint.means.at(number);
    for (const RoundRow& round : state->joint.untold) {
        shard(round.shard).round = round;
        shard(round.shard).in_round = true;
    }
}

void PhaseDriver::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

Slice PhaseDriver::part(int shard, BufferId buffer) const {
    const Range& range = config_.parts[static_cast<std::size_t>(shard)];
    return {buffer, range.first, range.count};
}

// All workers have the version that the run begins with, or goes on from, and begin at a word.
void PhaseDriver::on(Time now, const Start& event, Actions& actions) {
    weights_ = event.weights;
    motion_ = event.trend;
    books_.start(now);
    if (config_.run.stop_ns) actions.add<SetTimer>(next_id(), *config_.run.stop_ns);
    if (books_.evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
    rate_ = books_.rate();
    if (const auto end = books_.end()) begin_stop(*end, actions);  // where it goes on
    if (stopping_) return go_on(now, actions);
    for (RoleId role = 1; role <= config_.run.lambda; ++role) {
        ++sends_under_way_;
        actions.send<Exchange>(next_id(), role, Channel::control, {}, -1, rate_);
    }
    if (moves() && motion_ == no_buffer) return make(Making::rest, 0, actions);
    go_on(now, actions);
}

void PhaseDriver::go_on(Time now, Actions& actions) {
    if (making_ == Making::rest) return;
    while (go_on_in_cycle(now, actions)) {
        if (stopping_) break;
        if (!any_active() && !muster_.any_back()) return;  // until one is back
        take_back(actions);
        plan_ = plan_cycle(config_.phases.phases, static_cast<int>(shards_.size()), ++cycle_);
        reduce_ = prepare_ = broadcast_ = Stage::waits;
    }
    if (stopping_) try_finish(now, actions);
}

/// Whether the cycle is over. A stage that has not begun when the run is to end never does.
bool PhaseDriver::go_on_in_cycle(Time now, Actions& actions) {
    if (broadcast_ == Stage::waits) begin_broadcast(now, actions);
    if (reduce_ == Stage::waits && (!plan_.reduce_waits || broadcast_ == Stage::done)) begin_reduce(now, actions);
    if (prepare_ == Stage::waits && (!plan_.prepare_waits || reduce_ == Stage::done)) {
        prepare_ = Stage::done;
        Shard& it = shard(plan_.prepare);
        if (stopping_) {
            let_go(it.sum.mean.buffer, actions);
        } else if (it.sum.mean.buffer != no_buffer && making_ == Making::nothing) {
            prepare_ = Stage::runs;
            it.round.prepare_begin_ns = now;
            make(moves() ? Making::motion : Making::state, plan_.prepare, actions);
        } else if (it.sum.mean.buffer != no_buffer) {
            prepare_ = Stage::waits;  // for what is made for a broadcast
        }
    }
    return broadcast_ == Stage::done && reduce_ == Stage::done && prepare_ == Stage::done;
}

// What has not been reduced yet is sent as it is.
void PhaseDriver::begin_broadcast(Time now, Actions& actions) {
    Shard& it = shard(plan_.broadcast);
    if (stopping_ || muster_.members().size() == 0) {
        broadcast_ = Stage::done;
        return;
    }
    if (it.published == no_buffer) {
        if (making_ == Making::nothing) make(Making::published, plan_.broadcast, actions);
        return;
    }
    broadcast_ = Stage::runs;
    it.round.broadcast_begin_ns = now;
    for (Peer& other : peers_) other.received = false;
    muster_.each([this](RoleId role) { ++peer(role).broadcasts; });
    sent_ = {books_.version(), 0, 0, 0, muster_.members().number(), ++broadcasts_};
    sends_.begin(sent_);
    muster_.members().spread(part(plan_.broadcast, it.published), config_.spread, sends_);
    if (sends_.go_on([this] { return next_id(); }, actions)) ++sends_under_way_;
}

void PhaseDriver::try_end_broadcast(Time now) {
    if (broadcast_ != Stage::runs || !sends_.done() || !all_received()) return;
    broadcast_ = Stage::done;
    shard(plan_.broadcast).round.broadcast_end_ns = now;
}

void PhaseDriver::begin_reduce(Time now, Actions& actions) {
    if (stopping_ || muster_.members().size() == 0) {
        reduce_ = Stage::done;
        return;
    }
    reduce_ = Stage::runs;
    summed_ = false;
    reduce_group_ = muster_.members().number();
    ++exchanges_;
    Shard& it = shard(plan_.reduce);
    state_round(it, actions);
    it.round = {};
    it.round.round = cycle_;
    it.round.shard = plan_.reduce;
    it.round.reduce_begin_ns = now;
    it.in_round = true;
    rate_ = books_.rate();
    muster_.each([&](RoleId role) {
        peer(role).exchanged = false;
        ++peer(role).exchanges;
        ++sends_under_way_;
        actions.send<Exchange>(next_id(), role, Channel::control, {}, plan_.reduce, rate_, exchanges_);
    });
}

void PhaseDriver::try_end_reduce(Time now) {
    if (reduce_ != Stage::runs || !summed_ || !all_exchanged()) return;
    reduce_ = Stage::done;
    Shard& it = shard(plan_.reduce);
    it.round.reduce_end_ns = now;
    if (it.sum.mean.buffer == no_buffer) it.in_round = false;  // a reduce that was cut short makes no version
}

void PhaseDriver::make(Making what, int number, Actions& actions) {
    making_ = what;
    making_shard_ = number;
    const Shard& it = shard(number);
    const double beta = config_.phases.beta.at(it.means);
    Mix& mix = actions.add<Mix>();
    mix.id = making_id_ = next_id();
    const Slice where = part(number, no_buffer);
    if (what != Making::rest) {
        mix.first = where.first;
        mix.count = where.count;
    }
    const BufferId mean = it.sum.mean.buffer;
    switch (what) {
        case Making::rest:  // the model itself, so that there is something to make nothing of
            mix.add(weights_, 0);
            break;
        case Making::motion: {
            const double delta = config_.phases.delta.at(it.means);
            mix.add(motion_, delta);
            mix.add(mean, (1 - delta) * beta);
            mix.add(weights_, -(1 - delta) * beta);
            mix.out = std::exchange(motion_, no_buffer);
            break;
        }
        case Making::state:
            mix.work = Mix::Work::update;
            if (beta != 1) mix.add(weights_, 1 - beta);
            mix.add(mean, beta);
            mix.out = std::exchange(weights_, no_buffer);
            break;
        case Making::published: {
            // means counts the one that was just made.
            const double gamma = it.means > 0 ? config_.phases.gamma.at(it.means - 1) : 0;
            mix.add(weights_, 1);
            if (gamma != 0) mix.add(motion_, gamma);
            break;
        }
        case Making::nothing: break;
    }
}

void PhaseDriver::on(Time now, const Mixed& event, Actions& actions) {
    if (making_ == Making::nothing || event.id != making_id_)
        throw std::logic_error("a mean that the driver did not ask for");
    made(now, event.out, actions);
    go_on(now, actions);
}

void PhaseDriver::made(Time now, BufferId out, Actions& actions) {
    Shard& it = shard(making_shard_);
    switch (std::exchange(making_, Making::nothing)) {
        case Making::rest: motion_ = out; return;
        case Making::motion: motion_ = out; return make(Making::state, making_shard_, actions);
        case Making::state:
            weights_ = out;
            let_go(it.sum.mean.buffer, actions);
            ++it.means;
            for (const GradientRow& row : it.rows) {
                it.round.samples += row.samples;
                if (it.round.compute_begin_ns < 0 || row.begin_ns < it.round.compute_begin_ns)
                    it.round.compute_begin_ns = row.begin_ns;
                it.round.compute_end_ns = std::max(it.round.compute_end_ns, row.end_ns);
            }
            books_.apply(now, it.rows, rate_, actions);
            it.round.version = books_.version();
            if (books_.evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
            if (!stopping_)
                if (const auto end = books_.end()) begin_stop(*end, actions);
            let_go(it.published, actions);
            making_ = Making::nothing;
            save_if_due(now, actions);
            end_interrupted(now, actions);
            return make(Making::published, making_shard_, actions);
        case Making::published:
            it.published = out;
            if (prepare_ == Stage::runs && making_shard_ == plan_.prepare) {
                prepare_ = Stage::done;
                it.round.prepare_end_ns = now;
            }
            return;
        case Making::nothing: return;
    }
}

void PhaseDriver::state_round(Shard& it, Actions& actions) {
    if (!it.in_round) return;
    it.in_round = false;
    if (it.round.version > 0) actions.rounds.push_back(it.round);
}

void PhaseDriver::on(Time now, const Taken& event, Actions& actions) {
    --sends_under_way_;
    if (sends_.is_of(event)) {
        sends_.on(event);
        if (sends_.go_on([this] { return next_id(); }, actions)) ++sends_under_way_;
        try_end_broadcast(now);
    }
    go_on(now, actions);
}

void PhaseDriver::on(Time now, const Delivered& event, Actions& actions) {
    Peer& from = peer(event.from);
    if (const auto* push = std::get_if<Push>(&event.message)) {
        take(event.from - 1, *push, actions);
    } else if (const auto* exchanged = std::get_if<Exchanged>(&event.message)) {
        if (reduce_ != Stage::runs || exchanged->group != reduce_group_) return;  // it will once more
        Shard& it = shard(exchanged->shard);
        from.exchanged = true;
        ++it.round.workers;
        it.round.steps += exchanged->steps;
        it.rows.insert(it.rows.end(), from.rows.begin(), from.rows.end());
        from.rows.clear();
        actions.exchanges.push_back({cycle_, exchanged->shard, event.from - 1, exchanged->steps, exchanged->pulls,
                                     exchanged->asked_ns, exchanged->begin_ns, exchanged->end_ns});
        try_end_reduce(now);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        if (reduce_ != Stage::runs || summed_ ||
            share->group != reduce_group_) {  // of members that are no longer these
            BufferId mean = event.payload.buffer;
            return let_go(mean, actions);
        }
        shard(plan_.reduce).sum = {event.payload, *share};
        summed_ = true;
        try_end_reduce(now);
    } else if (std::holds_alternative<Received>(event.message)) {
        from.received = true;
        try_end_broadcast(now);
    } else if (const auto* bye = std::get_if<Bye>(&event.message)) {
        from.expected = bye->pushes;
        from.bye = true;
        if (bye->cancelled) {
            GradientRow row = unapplied_row(event.from - 1, bye->gradient, Outcome::cancelled);
            row.end_ns = row.push_ns = -1;
            actions.gradients.push_back(row);
        }
    } else {
        throw std::logic_error("a driver was sent a message that is not for one");
    }
    go_on(now, actions);
}

void PhaseDriver::take(WorkerId worker, const Push& push, Actions& actions) {
    Peer& from = peers_.at(static_cast<std::size_t>(worker));
    from.rows.push_back(unapplied_row(worker, push, Outcome::leftover));
    ++from.told;
    books_.look_at(from.rows.back());
    if (!stopping_ && books_.end() == Status::diverged) begin_stop(Status::diverged, actions);
}

void PhaseDriver::on(Time now, const Evaluated& event, Actions& actions) {
    const auto end = books_.on(event, actions);
    if (end && !stopping_) begin_stop(*end, actions);
    go_on(now, actions);
}

template <class Other>
void PhaseDriver::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a driver is not told of");
}

std::string PhaseDriver::waiting() const {
    if (finished_) return "";
    if (making_ != Making::nothing) return "makes shard " + std::to_string(making_shard_) + " of the joint model ready";
    if (reduce_ == Stage::runs)
        return "waits for the mean of shard " + std::to_string(plan_.reduce) + ", to which " +
               std::to_string(count([](const Peer& it) { return it.exchanged; })) + " of " +
               std::to_string(muster_.members().size()) + " workers have done their part";
    if (broadcast_ == Stage::runs)
        return "waits until shard " + std::to_string(plan_.broadcast) +
               " is with all workers: " + std::to_string(count([](const Peer& it) { return it.received; })) + " of " +
               std::to_string(muster_.members().size()) + " have it";
    if (books_.saving() && stopping_) return "waits for its checkpoint to be written";
    if (stopping_) return "waits for the last words of the workers";
    if (!any_active()) return "waits for any worker to be back";
    return "waits for an evaluation";
}

std::string PhaseDriver::describe() const {
    return "driver at version " + std::to_string(books_.version()) + ", cycle " + std::to_string(cycle_) + ": " +
           std::to_string(books_.accepted()) + " steps in the joint model; " + (finished_ ? "finished" : waiting());
}

}  // namespace rubato
