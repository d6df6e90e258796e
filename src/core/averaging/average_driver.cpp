#include "core/averaging/average_driver.hpp"

#include <algorithm>
#include <stdexcept>

namespace rubato {

AverageDriver::AverageDriver(const AverageConfig& config, const ServerState* state)
    : config_(config),
      books_(config.run),
      peers_(static_cast<std::size_t>(config.run.lambda)),
      muster_(config.run.lambda),
      has_trend_(std::max<std::size_t>(1, config.parts.size())) {
    if (state == nullptr) return;
    books_.restore(*state);
    round_.round = state->joint.rounds;
    last_id_ = state->last_id;
    for (std::int64_t round = 0; round < round_.round && state->joint.trend; ++round)
        has_trend_[fragment(round)] = true;
}

void AverageDriver::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void AverageDriver::on(Time now, const Start& event, Actions& actions) {
    weights_ = event.weights;
    trend_ = event.trend;
    books_.start(now);
    if (config_.run.stop_ns) actions.add<SetTimer>(next_id(), *config_.run.stop_ns);
    if (books_.evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
    if (const auto end = books_.end()) begin_stop(*end, actions);  // where it goes on
    if (stopping_) return try_finish(now, actions);
    begin_round(now, actions);
}

// All workers have the first version already: they hear of it from the driver itself, and no model is moved. Where the
// run goes on they have the present one, of which a broadcast would bring a fragment alone.
void AverageDriver::begin_round(Time now, Actions& actions) {
    take_back(actions);
    if (active() == 0 && muster_.members().number() > 0) return;  // until one is back
    const std::int64_t round = round_.round;
    round_ = {};
    round_.round = round;
    round_.broadcast_begin_ns = now;
    const Time ready_ns = sum_.said.ready_ns;
    sum_ = {};
    summed_ = false;
    running_ = true;
    given_up_ = false;
    const auto steps = streams()                     ? steps_of_round()
                       : config_.averaging.gradients ? 1
                                                     : books_.steps_left(config_.averaging.tau, active());
    if (streams()) round_.shard = static_cast<std::int32_t>(fragment(round));
    model_ = {books_.version(),
              steps,
              books_.rate(),
              ready_ns,
              muster_.members().number(),
              restarts_ > 0 ? books_.version() + restarts_ : 0};
    for (Peer& peer : peers_) {
        peer.steps = 0;
        peer.merged = false;
    }
    take_early();
    muster_.each([&](RoleId role) {
        peer(role).whole = std::exchange(peer(role).anew, false) && streams();
        if (peer(role).whole) send_whole(role, Model::whole, actions);
    });
    spread_ = !std::exchange(first_, false) || (books_.version() > 0 && !streams()) || muster_.members().number() > 0;
    if (!spread_) {
        for (RoleId role = 1; role <= config_.run.lambda; ++role) {
            ++sends_under_way_;
            actions.add<Send>(next_id(), role, Channel::weights, Message(model_), Slice{});
        }
        return;
    }
    broadcast_.begin(model_);
    muster_.members().spread(exchanged(round - 1, weights_), config_.averaging.spread, broadcast_);
    if (broadcast_.go_on([this] { return next_id(); }, actions)) ++sends_under_way_;
}

void AverageDriver::on(Time now, const Taken& event, Actions& actions) {
    --sends_under_way_;
    if (broadcast_.is_of(event)) {
        broadcast_.on(event);
        if (broadcast_.go_on([this] { return next_id(); }, actions)) ++sends_under_way_;
        if (broadcast_.done()) try_prepare(now, actions);
    }
    if (stopping_) try_finish(now, actions);
}

void AverageDriver::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* push = std::get_if<Push>(&event.message)) {
        take(now, event.from - 1, *push, actions);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        // Of members that are no longer these, or of a round that was given up.
        if (!running_ || summed_ || share->group != muster_.members().number() || active() == 0 ||
            (!streams() && share->round != serial_of(model_))) {
            BufferId mean = event.payload.buffer;
            let_go(mean, actions);
            return;
        }
        sum_ = {event.payload, *share};
        summed_ = true;
        round_.reduce_end_ns = now;
        try_prepare(now, actions);
    } else if (const auto* bye = std::get_if<Bye>(&event.message)) {
        peer(event.from).expected = bye->pushes;
        peer(event.from).bye = true;
        if (bye->cancelled) {
            GradientRow row = unapplied_row(event.from - 1, bye->gradient, Outcome::cancelled);
            row.end_ns = row.push_ns = -1;
            actions.gradients.push_back(row);
        }
    } else {
        throw std::logic_error("a driver was sent a message that is not for one");
    }
    if (stopping_) try_finish(now, actions);
}

void AverageDriver::take(Time now, WorkerId worker, const Push& push, Actions& actions) {
    ++peers_.at(static_cast<std::size_t>(worker)).told;
    books_.look_at(unapplied_row(worker, push, Outcome::leftover));
    if (streams() && peer(worker + 1).steps >= model_.steps)
        early_.emplace_back(worker, push);
    else
        count_in(worker, push);
    if (!stopping_ && books_.end() == Status::diverged) begin_stop(Status::diverged, actions);
    try_prepare(now, actions);
}

// A worker is ahead by less than a round: it needs what this one makes before it comes to the end of the next one.
void AverageDriver::take_early() {
    for (const auto& [worker, push] : std::exchange(early_, {})) count_in(worker, push);
}

void AverageDriver::count_in(WorkerId worker, const Push& push) {
    Peer& from = peer(worker + 1);
    rows_.push_back(unapplied_row(worker, push, Outcome::leftover));
    const auto first_of = [](Time& first, Time it) { first = first < 0 ? it : std::min(first, it); };
    ++from.steps;
    if (!from.merged && push.read_version == model_.version) {
        from.merged = true;
        round_.broadcast_end_ns = std::max(round_.broadcast_end_ns, push.begin_ns);
    }
    first_of(round_.compute_begin_ns, push.begin_ns);
    round_.compute_end_ns = std::max(round_.compute_end_ns, push.end_ns);
    if (from.steps == model_.steps) {
        first_of(round_.reduce_begin_ns, push.end_ns);
        ++round_.workers;
    }
    ++round_.steps;
    round_.samples += push.batch.count;
}

void AverageDriver::try_prepare(Time now, Actions& actions) {
    if (!running_ || !summed_ || !broadcast_.done()) return;
    if (stopping_ || sum_.mean.buffer == no_buffer) {  // a round that is cut short makes no version
        running_ = false;
        let_go(sum_.mean.buffer, actions);
        return;
    }
    bool lacks = false;
    muster_.each([&](RoleId role) { lacks = lacks || (peer(role).steps < model_.steps && has_data(role)); });
    if (lacks) return;
    running_ = false;
    preparing_ = true;
    round_.prepare_begin_ns = now;
    if (!config_.averaging.gradients) return take_outer_step(actions);
    const auto part = static_cast<std::int32_t>(actions.parts.size());
    const auto step = static_cast<std::int32_t>(actions.steps.size());
    actions.parts.push_back({sum_.mean.buffer, 1, books_.version(), 1, -1});
    actions.steps.push_back({part, 1, model_.learning_rate, -1});
    preparing_id_ = next_id();
    actions.add<Update>(preparing_id_, std::exchange(weights_, no_buffer), books_.version(), step, 1);
}

// First b, then the joint model, of which b is a part.
void AverageDriver::take_outer_step(Actions& actions) {
    const double eta = config_.averaging.outer_learning_rate, mu = config_.averaging.outer_momentum;
    const BufferId mean = sum_.mean.buffer;
    Mix& mix = actions.add<Mix>();
    mix.id = preparing_id_ = next_id();
    if (streams()) {
        mix.first = sum_.mean.first;
        mix.count = sum_.mean.count;
    }
    if (mu > 0 && !trending_) {
        trending_ = true;
        if (has_trend_[fragment(round_.round)]) mix.add(trend_, mu);
        has_trend_[fragment(round_.round)] = true;
        mix.add(weights_, 1);
        mix.add(mean, -1);
        mix.out = std::exchange(trend_, no_buffer);
        return;
    }
    trending_ = false;
    mix.work = Mix::Work::update;
    if (eta != 1) mix.add(weights_, 1 - eta);
    mix.add(mean, eta);
    if (mu > 0) mix.add(trend_, -eta * mu);
    mix.out = std::exchange(weights_, no_buffer);
}

void AverageDriver::on(Time now, const Mixed& event, Actions& actions) {
    if (!preparing_ || event.id != preparing_id_) throw std::logic_error("a mean that the driver did not ask for");
    if (!trending_) return prepared(now, event.out, actions);
    trend_ = event.out;
    take_outer_step(actions);
}

void AverageDriver::on(Time now, const Applied& event, Actions& actions) {
    if (!preparing_ || event.id != preparing_id_) throw std::logic_error("an update that the driver did not ask for");
    prepared(now, event.weights, actions);
}

void AverageDriver::prepared(Time now, BufferId weights, Actions& actions) {
    preparing_ = false;
    weights_ = weights;
    let_go(sum_.mean.buffer, actions);
    books_.apply(now, rows_, model_.learning_rate, actions);
    round_.version = books_.version();
    round_.prepare_end_ns = now;
    actions.rounds.push_back(round_);
    ++round_.round;
    if (books_.evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
    if (!stopping_)
        if (const auto end = books_.end()) begin_stop(*end, actions);
    save_if_due(now, actions);
    end_interrupted(now, actions);
    if (!stopping_) return begin_round(now, actions);
    try_finish(now, actions);
}

// Between two versions. What workers have done of the next one is begun anew.
void AverageDriver::save_if_due(Time now, Actions& actions) {
    if (!books_.save_due(now, stopping_) || !books_.can_leave_out(rows_)) return;
    ServerState state = books_.state(now, next_id());
    state.joint.rounds = round_.round;
    state.joint.trend = trend_ != no_buffer;
    books_.save(std::move(state), weights_, trend_, actions);
}

// What is being made is saved, too.
void AverageDriver::end_interrupted(Time now, Actions& actions) {
    if (!books_.interrupted() || stopping_ || preparing_) return;
    save_if_due(now, actions);
    begin_stop(Status::interrupted, actions);
}

void AverageDriver::on(Time now, const Saved& event, Actions& actions) {
    books_.on(event);
    if (stopping_) try_finish(now, actions);
}

void AverageDriver::on(Time now, const Evaluated& event, Actions& actions) {
    const auto end = books_.on(event, actions);
    if (end && !stopping_) begin_stop(*end, actions);
    if (stopping_) try_finish(now, actions);
}

void AverageDriver::on(Time now, const TimerFired&, Actions& actions) {
    if (!stopping_) begin_stop(Status::finished, actions);
    try_finish(now, actions);
}

void AverageDriver::on(Time now, const Interrupted&, Actions& actions) {
    books_.interrupt();
    end_interrupted(now, actions);
    try_finish(now, actions);
}

// The round that is under way is gone through to its end, so that every message that was sent finds its receiver there,
// but no models go up: what workers have done in it is left over.
void AverageDriver::begin_stop(Status status, Actions& actions) {
    stopping_ = true;
    status_ = status;
    if (streams() && running_ && !summed_ && active() == 0) running_ = false;  // it waited for one to be back
    const std::int64_t replies = given_up_ ? Stop::given_up : 0;
    muster_.each(
        [&](RoleId role) { send_stop(role, first_ || peer(role).anew ? -1 : serial_of(model_), replies, actions); });
    for (const RoleId role : muster_.dismiss()) send_stop(role, -1, 0, actions);
}

void AverageDriver::send_stop(RoleId role, std::int64_t last, std::int64_t replies, Actions& actions) {
    ++sends_under_way_;
    actions.send<Stop>(next_id(), role, Channel::control, {}, replies, last);
}

void AverageDriver::try_finish(Time now, Actions& actions) {
    if (finished_ || !stopping_ || preparing_) return;
    if (books_.final_evaluation_due() && !running_) books_.evaluate(now, next_id(), weights_, actions);
    if (running_ || sends_under_way_ > 0 || books_.evaluating() || books_.saving()) return;
    bool speaks = false;
    muster_.each([&](RoleId role) { speaks = speaks || !peer(role).bye || peer(role).told < peer(role).expected; });
    if (speaks) return;
    take_early();
    JointBooks::leave_over(rows_, actions);
    rows_.clear();
    finished_ = true;
    let_go(weights_, actions);
    let_go(trend_, actions);
    actions.list.emplace_back(books_.finish(status_));
}

// What it has told of is in the rows; it may have begun one more.
void AverageDriver::on(Time, const PeerLost& event, Actions& actions) {
    const Peer& lost = peer(event.peer);
    if (config_.averaging.stream.overlap == 0 && (lost.steps >= model_.steps || !running_ || summed_)) return;
    books_.state_lost(event.peer - 1, model_.version, lost.told, config_.data, actions);
}

void AverageDriver::on(Time, const Abandoned& event, Actions& actions) {
    take_early();
    JointBooks::leave_over(rows_, actions);
    finished_ = true;
    actions.list.emplace_back(Finish{event.status});
}

template <class Other>
void AverageDriver::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a driver is not told of");
}

std::string AverageDriver::waiting() const {
    if (finished_) return "";
    if (preparing_) return "makes version " + std::to_string(books_.version() + 1);
    if (running_ && !broadcast_.done())
        return "sends version " + std::to_string(model_.version) + " to worker " +
               std::to_string(broadcast_.sends_to() - 1);
    if (running_ && !summed_)
        return "waits for the mean of round " + std::to_string(round_.round) + ", to which " +
               std::to_string(round_.workers) + " of " + std::to_string(active()) + " workers have done their part";
    if (running_) return "waits for what workers tell of their steps";
    if (books_.saving() && stopping_) return "waits for its checkpoint to be written";
    if (stopping_) return "waits for the last words of the workers";
    if (active() == 0) return "waits for any worker to be back";
    return "waits for an evaluation";
}

std::string AverageDriver::describe() const {
    return "driver at version " + std::to_string(books_.version()) + ": " + std::to_string(books_.accepted()) +
           " steps in the joint model, " + std::to_string(rows_.size()) + " in this round; " +
           (finished_ ? "finished" : waiting());
}

}  // namespace rubato
