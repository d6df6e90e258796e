#include "core/averaging/elastic_server.hpp"

#include "core/let_go.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace rubato {

ElasticServer::ElasticServer(const AverageConfig& config, const ServerState* state)
    : config_(config), books_(config.run), peers_(static_cast<std::size_t>(config.run.lambda)) {
    if (state == nullptr) return;
    books_.restore(*state);
    exchanges_ = state->joint.rounds;
    last_id_ = state->last_id;
}

void ElasticServer::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

// All workers have the version that the run begins with, or goes on from, and begin at a word.
void ElasticServer::on(Time now, const Start& event, Actions& actions) {
    weights_ = event.weights;
    trend_ = event.trend;
    books_.start(now);
    if (config_.run.stop_ns) actions.add<SetTimer>(next_id(), *config_.run.stop_ns);
    if (books_.evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
    if (const auto end = books_.end()) begin_stop(*end, actions);  // where it goes on
    if (stopping_) return try_finish(now, actions);
    const std::int32_t steps = books_.steps_left(config_.averaging.tau, config_.run.lambda);
    const Message word(Model{books_.version(), steps, books_.rate(), 0});
    for (RoleId role = 1; role <= config_.run.lambda; ++role) {
        Peer& to = peer(role);
        ++to.models;
        to.steps = steps;
        to.served_ns = now;
        ++sends_under_way_;
        actions.add<Send>(next_id(), role, Channel::weights, word, Slice{});
    }
}

void ElasticServer::on(Time now, const Delivered& event, Actions& actions) {
    Peer& from = peer(event.from);
    if (const auto* push = std::get_if<Push>(&event.message)) {
        from.rows.push_back(unapplied_row(event.from - 1, *push, Outcome::leftover));
        ++from.told;
        from.took_ns += std::max<Time>(0, push->end_ns - push->begin_ns);
        books_.look_at(from.rows.back());
        if (!stopping_ && books_.end() == Status::diverged) begin_stop(Status::diverged, actions);
        go_on(now, actions);
    } else if (std::holds_alternative<Inquiry>(event.message)) {
        inbox_.push_back({event.from, {}, {}, now});
        go_on(now, actions);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        ++from.shares;
        if (event.payload.buffer != no_buffer) inbox_.push_back({event.from, event.payload, *share, now});
        go_on(now, actions);
    } else if (const auto* bye = std::get_if<Bye>(&event.message)) {
        from.expected = bye->pushes;
        from.bye = true;
        if (bye->cancelled) {
            GradientRow row = unapplied_row(event.from - 1, bye->gradient, Outcome::cancelled);
            row.end_ns = row.push_ns = -1;
            actions.gradients.push_back(row);
        }
    } else {
        throw std::logic_error("an elastic server was sent a message that is not for one");
    }
    if (stopping_) try_finish(now, actions);
}

void ElasticServer::serve(Time now, RoleId role, Actions& actions) {
    Peer& to = peer(role);
    ++to.models;
    to.served_ns = now;
    to.steps = books_.steps_left(steps_of(to), config_.run.lambda);
    ++sends_under_way_;
    actions.add<Send>(next_id(), role, Channel::weights, Message(Model{books_.version(), to.steps, books_.rate(), 0}),
                      Slice{weights_, 0, config_.run.parameters});
}

// DyLU. Speeds are steps per second of computing, over all that a worker has told of, which is in its messages; so runs
// replay. Who is nearly as fast counts as fast: quotients of equal speeds are not always 1.
std::int32_t ElasticServer::steps_of(const Peer& worker) const {
    const std::int32_t tau = config_.averaging.tau;
    if (!config_.averaging.delayed.dylu) return tau;
    const auto speed = [](const Peer& it) {
        return it.took_ns > 0 ? static_cast<double>(it.told) / static_cast<double>(it.took_ns) : 0;
    };
    double fastest = 0;
    for (const Peer& it : peers_) fastest = std::max(fastest, speed(it));
    if (speed(worker) == 0 || speed(worker) == fastest) return tau;
    return std::max(1, static_cast<std::int32_t>(std::floor(speed(worker) / fastest * tau + 1e-9)));
}

void ElasticServer::go_on(Time now, Actions& actions) {
    while (moving_ == 0 && !stopping_ && !inbox_.empty() && inbox_.front().payload.buffer == no_buffer) {
        serve(now, inbox_.front().from, actions);
        inbox_.pop_front();
    }
    if (moving_ != 0 || stopping_ || inbox_.empty()) return;
    const Work& first = inbox_.front();
    if (static_cast<double>(peer(first.from).rows.size()) < first.said.weight) return;
    moving_ns_ = now;
    trending_ = takes_deltas() && config_.averaging.outer_momentum > 0;
    move(actions);
}

// b takes in every delta as it comes, so that no sum of them is kept; it moves the joint model with the last of N
// alone.
void ElasticServer::move(Actions& actions) {
    const AveragingSpec& spec = config_.averaging;
    const BufferId delta = inbox_.front().payload.buffer;
    const int pushes = spec.delayed.pushes;
    Mix& mix = actions.add<Mix>();
    mix.id = moving_ = next_id();
    if (trending_) {
        const double beta = exchanges_ % pushes == 0 ? spec.outer_momentum : 1;
        if (trend_ != no_buffer) mix.add(trend_, beta);
        mix.add(delta, 1.0 / pushes);
        mix.out = std::exchange(trend_, no_buffer);
        return;
    }
    mix.work = Mix::Work::update;
    mix.add(weights_, 1);
    if (!takes_deltas()) {
        mix.add(delta, 1);
    } else {
        mix.add(delta, -spec.outer_learning_rate / (spec.delayed.whole ? 1 : pushes));
        if (trend_ != no_buffer && (exchanges_ + 1) % pushes == 0)
            mix.add(trend_, -spec.outer_learning_rate * spec.outer_momentum);
    }
    mix.out = std::exchange(weights_, no_buffer);
}

void ElasticServer::on(Time now, const Mixed& event, Actions& actions) {
    if (moving_ == 0 || event.id != moving_) throw std::logic_error("a move that the server did not ask for");
    moving_ = 0;
    if (std::exchange(trending_, false)) {
        trend_ = event.out;
        return move(actions);
    }
    weights_ = event.out;
    const Work it = inbox_.front();
    inbox_.pop_front();
    actions.add<Release>(it.payload.buffer);
    Peer& from = peer(it.from);
    // It may have told of steps already that it took since.
    const auto end = from.rows.begin() + static_cast<std::ptrdiff_t>(it.said.weight);
    std::vector<GradientRow> rows(from.rows.begin(), end);
    from.rows.erase(from.rows.begin(), end);
    RoundRow round;
    round.round = exchanges_++;
    round.worker = it.from - 1;
    round.workers = 1;
    round.steps = static_cast<std::int64_t>(rows.size());
    for (const GradientRow& row : rows) round.samples += row.samples;
    if (!rows.empty()) {
        round.compute_begin_ns = rows.front().begin_ns;
        round.compute_end_ns = rows.back().end_ns;
    }
    round.broadcast_begin_ns = from.served_ns;
    round.broadcast_end_ns = takes_deltas() ? round.compute_begin_ns : it.said.ready_ns;
    round.reduce_begin_ns = it.said.ready_ns;
    round.reduce_end_ns = it.arrived_ns;
    round.prepare_begin_ns = moving_ns_;
    round.prepare_end_ns = now;
    books_.apply(now, rows, books_.rate(), actions);
    round.version = books_.version();
    actions.rounds.push_back(round);
    if (books_.evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
    if (!stopping_)
        if (const auto reason = books_.end()) begin_stop(*reason, actions);
    save_if_due(now, actions);
    end_interrupted(now, actions);
    if (takes_deltas() && !stopping_ && !it.lost) serve(now, it.from, actions);
    go_on(now, actions);
    if (stopping_) try_finish(now, actions);
}

void ElasticServer::save_if_due(Time now, Actions& actions) {
    if (!books_.save_due(now, stopping_)) return;
    for (const Peer& it : peers_)
        if (!books_.can_leave_out(it.rows)) return;
    ServerState state = books_.state(now, next_id());
    state.joint.rounds = exchanges_;
    state.joint.trend = trend_ != no_buffer;
    books_.save(std::move(state), weights_, trend_, actions);
}

// What is being made is saved, too.
void ElasticServer::end_interrupted(Time now, Actions& actions) {
    if (!books_.interrupted() || stopping_ || moving_ != 0) return;
    save_if_due(now, actions);
    begin_stop(Status::interrupted, actions);
}

void ElasticServer::on(Time now, const Saved& event, Actions& actions) {
    books_.on(event);
    if (stopping_) try_finish(now, actions);
}

void ElasticServer::on(Time now, const Taken&, Actions& actions) {
    --sends_under_way_;
    if (stopping_) try_finish(now, actions);
}

void ElasticServer::on(Time now, const Evaluated& event, Actions& actions) {
    const auto end = books_.on(event, actions);
    if (end && !stopping_) begin_stop(*end, actions);
    if (stopping_) try_finish(now, actions);
}

void ElasticServer::on(Time now, const TimerFired&, Actions& actions) {
    if (!stopping_) begin_stop(Status::finished, actions);
    try_finish(now, actions);
}

void ElasticServer::on(Time now, const Interrupted&, Actions& actions) {
    books_.interrupt();
    end_interrupted(now, actions);
    try_finish(now, actions);
}

// Who asks from now on gets no answer; who has been answered says what it would have, without a difference.
void ElasticServer::begin_stop(Status status, Actions& actions) {
    stopping_ = true;
    status_ = status;
    for (RoleId role = 1; role <= config_.run.lambda; ++role) {
        if (peer(role).down) continue;
        ++sends_under_way_;
        actions.send<Stop>(next_id(), role, Channel::control, {}, peer(role).models);
    }
}

void ElasticServer::try_finish(Time now, Actions& actions) {
    if (finished_ || !stopping_ || moving_ != 0) return;
    if (books_.final_evaluation_due()) books_.evaluate(now, next_id(), weights_, actions);
    if (sends_under_way_ > 0 || books_.evaluating() || books_.saving()) return;
    for (const Peer& it : peers_)
        if (!it.down && (!it.bye || it.told < it.expected || it.shares + (takes_deltas() ? 0 : 1) < it.models)) return;
    for (const Peer& it : peers_) JointBooks::leave_over(it.rows, actions);
    for (Peer& it : peers_) it.rows.clear();
    for (const Work& it : inbox_)
        if (it.payload.buffer != no_buffer) actions.add<Release>(it.payload.buffer);
    inbox_.clear();
    finished_ = true;
    actions.add<Release>(std::exchange(weights_, no_buffer));
    let_go(trend_, actions);
    actions.list.emplace_back(books_.finish(status_));
}

// What has come of it stays, and is taken in as from any other: steps that are in none of it are lost with it.
void ElasticServer::on(Time now, const PeerDown& event, Actions& actions) {
    if (finished_) return;
    Peer& lost = peer(event.peer);
    books_.lose(event.peer - 1, event.begun);
    lost.down = true;
    std::size_t kept = 0;
    for (Work& it : inbox_) {
        if (it.from != event.peer) continue;
        // Of the steps that it is made of, some may never be told of.
        const auto told = std::min(static_cast<std::size_t>(it.said.weight), lost.rows.size() - kept);
        it.said.weight = static_cast<double>(told);
        it.lost = true;
        kept += told;
    }
    for (std::size_t i = kept; i < lost.rows.size(); ++i) {
        lost.rows[i].outcome = Outcome::dropped;
        actions.gradients.push_back(lost.rows[i]);
    }
    lost.rows.resize(kept);
    std::erase_if(inbox_, [&](const Work& it) { return it.from == event.peer && it.payload.buffer == no_buffer; });
    go_on(now, actions);
    if (stopping_) try_finish(now, actions);
}

void ElasticServer::on(Time now, const PeerBack& event, Actions& actions) {
    if (finished_) return;
    Peer& it = peer(event.peer);
    it.down = it.bye = false;
    it.models = it.shares = 0;
    if (!stopping_) {
        inbox_.push_back({event.peer, {}, {}, now});  // as if it had asked
        return go_on(now, actions);
    }
    ++sends_under_way_;
    actions.send<Stop>(next_id(), event.peer, Channel::control, {}, 0);
}

// What it has told of is in the rows; it may have begun one more.
void ElasticServer::on(Time, const PeerLost& event, Actions& actions) {
    const Peer& lost = peer(event.peer);
    // A delta is not sent before all is told of it, and then it has begun nothing.
    if (takes_deltas() && static_cast<std::int64_t>(lost.rows.size()) >= lost.steps) return;
    books_.state_lost(event.peer - 1, 0, lost.told, config_.data, actions);
}

void ElasticServer::on(Time, const Abandoned& event, Actions& actions) {
    for (const Peer& it : peers_) JointBooks::leave_over(it.rows, actions);
    finished_ = true;
    actions.list.emplace_back(Finish{event.status});
}

template <class Other>
void ElasticServer::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that an elastic server is not told of");
}

std::string ElasticServer::waiting() const {
    if (finished_) return "";
    if (moving_ != 0) return "moves the joint model to version " + std::to_string(books_.version() + 1);
    if (books_.saving() && stopping_) return "waits for its checkpoint to be written";
    if (stopping_) return "waits for the last words of the workers";
    if (std::all_of(peers_.begin(), peers_.end(), [](const Peer& it) { return it.down; }))
        return "waits for any worker to be back";
    return "waits for a worker that has taken its steps";
}

std::string ElasticServer::describe() const {
    return "elastic server at version " + std::to_string(books_.version()) + ": " + std::to_string(books_.accepted()) +
           " steps in the joint model, " + std::to_string(inbox_.size()) + " messages wait; " +
           (finished_ ? "finished" : waiting());
}

}  // namespace rubato
