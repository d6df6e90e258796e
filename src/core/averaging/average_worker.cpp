#include "core/averaging/average_worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

AverageWorker::AverageWorker(const AverageWorkerConfig& config, const WorkerState& state)
    : LocalWorker(config.worker, config.data, state),
      config_(config),
      among_(config.worker, config.data.lambda),
      passing_(config.worker + 1, config.spread, false),
      reduce_(among_.reduce(false)) {}

void AverageWorker::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void AverageWorker::on(Time now, const Start& event, Actions&) {
    start(now, event.weights);
}

void AverageWorker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* model = std::get_if<Model>(&event.message)) {
        on_model(now, event, *model, actions);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        on_share(now, event, *share, actions);
    } else if (const auto* change = std::get_if<Membership>(&event.message)) {
        on_membership(now, *change, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        book(now);
        stopping_ = true;
        last_serial_ = stop->version;
        given_up_ = given_up_ || stop->replies == Stop::given_up;
        if (phase_ == Phase::computing) steps_.cancel(actions);
        if (given_up_) return give_up(now, actions);
        try_leave(actions);
    } else {
        throw std::logic_error("a worker that averages was sent a message that is not for one");
    }
}

void AverageWorker::on_model(Time now, const Delivered& event, const Model& model, Actions& actions) {
    const bool news = serial_of(model) > serial_;
    // Not before the round before is over here, too.
    const bool busy = reduce_.mixing() || share_ != 0 || passing_.sending() || passing_.gathering();
    Slice piece = event.payload;
    if (given_up_ || among_.late(model.group)) return let_go(piece.buffer, actions);
    if (among_.early(model.group) || (news && busy)) return among_.hold(event);
    if (piece.buffer != no_buffer &&
        !passing_.come(among_.members(), serial_of(model), event, model, {no_buffer, 0, config_.parameters}, actions))
        return;
    if (news) begin_round(now, event, model, actions);
    go_on_passing(now, actions);
    if (news) take_held(now, actions);
}

void AverageWorker::begin_round(Time now, const Delivered& event, const Model& model, Actions& actions) {
    const Time asked_ns = since_ns_;
    if (!stopping_) {
        book_wait(now, event.started_ns, model.ready_ns);
        ++books_.pulls;
    }
    since_ns_ = now;
    reset_reduce(actions);  // there may be something of a round that nobody was left to end
    version_ = model.version;
    serial_ = serial_of(model);
    has_contributed_ = false;
    let_go(kept_.buffer, actions);
    if (event.payload.buffer != no_buffer) let_go(weights_, actions);
    steps_.begin(model.version, model.steps, model.learning_rate, asked_ns);
    phase_ = Phase::passing;
}

// Without a model on its way it begins at the driver's own word.
void AverageWorker::go_on_passing(Time now, Actions& actions) {
    if (given_up_) return give_up(now, actions);
    if (passing_.go_on([this] { return next_id(); }, actions)) ++sends_under_way_;
    if (phase_ != Phase::passing || (passing_.busy() && !passing_.done())) return;
    if (passing_.busy()) weights_ = passing_.take().buffer;
    go_on_with_steps(now, actions);
}

void AverageWorker::go_on_with_steps(Time now, Actions& actions) {
    if (stopping_) return cut_short(now, actions);
    book(now);
    if (steps_.compute(now, weights_, next_id(), actions)) {
        phase_ = Phase::computing;
        return;
    }
    contribute(now, {std::exchange(weights_, no_buffer), 0, config_.parameters}, steps_.done(), actions);
}

void AverageWorker::on(Time now, const GradientReady& event, Actions& actions) {
    if (!take(now, event, actions)) return cut_short(now, actions);
    book(now);
    if (config_.gradients)
        return contribute(now, {event.gradient, 0, config_.parameters}, static_cast<double>(steps_.samples()), actions);
    phase_ = Phase::stepping;
    take_step(event.gradient, actions);
}

void AverageWorker::on(Time now, const Cancelled& event, Actions& actions) {
    take(event);
    cut_short(now, actions);
}

void AverageWorker::on(Time now, const Applied& event, Actions& actions) {
    weights_ = steps_.on(event, actions);
    go_on_with_steps(now, actions);
}

void AverageWorker::cut_short(Time now, Actions& actions) {
    let_go(weights_, actions);
    contribute(now, {}, 0, actions);
}

void AverageWorker::contribute(Time now, const Slice& mean, double weight, Actions& actions) {
    kept_ = mean;
    phase_ = Phase::reducing;
    if (given_up_) return give_up(now, actions);
    contributed_ = {version_, 1, weight, now, 0, serial_};
    has_contributed_ = true;
    reduce_.begin({kept_, contributed_}, true);
    go_on_reducing(now, actions);
}

void AverageWorker::on_share(Time now, const Delivered& event, const Share& share, Actions& actions) {
    if (given_up_ || among_.late(share.group) || share.round < serial_) {
        Slice mean = event.payload;
        return let_go(mean.buffer, actions);
    }
    if (among_.outside() || share.round > serial_ || share.group > reduce_.group()) return among_.hold(event);
    reduce_.come(event.from - 1, {event.payload, share}, actions);
    go_on_reducing(now, actions);
}

void AverageWorker::reset_reduce(Actions& actions) {
    reduce_.end(actions);
    reduce_ = among_.reduce(false);
}

void AverageWorker::on_membership(Time now, const Membership& change, Actions& actions) {
    switch (among_.on(change)) {
        case Among::News::none: return;
        case Among::News::gone: return take_held(now, actions);
        case Among::News::joined: reset_reduce(actions); return take_held(now, actions);
        case Among::News::changed: break;
    }
    if (!change.there) passing_.lose(change.worker + 1, actions);
    if (change.over) {
        given_up_ = true;
        return give_up(now, actions);
    }
    if (has_contributed_ && change.round == serial_) {
        renews_ = true;
        try_renew(now, actions);
    } else if (!reduce_.begun()) {
        reset_reduce(actions);
    }
    take_held(now, actions);
    if (phase_ == Phase::passing) go_on_passing(now, actions);
}

void AverageWorker::take_held(Time now, Actions& actions) {
    among_.take_held([&](const Delivered& event) { on(now, event, actions); });
}

void AverageWorker::try_renew(Time now, Actions& actions) {
    if (!renews_ || share_ != 0 || reduce_.mixing()) return;
    renews_ = false;
    reset_reduce(actions);
    book(now);
    phase_ = Phase::reducing;
    reduce_.begin({kept_, contributed_}, true);
    go_on_reducing(now, actions);
    take_held(now, actions);
}

void AverageWorker::give_up(Time now, Actions& actions) {
    renews_ = false;
    passing_.end(actions);
    among_.drop_held(actions);
    if (passing_.sending() || passing_.gathering()) return;
    if (phase_ == Phase::passing) return go_on_with_steps(now, actions);
    // Steps under way end in contribute(); a sum or a message under way asks once more at its end.
    if (phase_ == Phase::computing || phase_ == Phase::stepping) return;
    if (reduce_.mixing() || share_ != 0) return;
    reduce_.end(actions);
    let_go(kept_.buffer, actions);
    phase_ = Phase::waiting;
    try_leave(actions);
}

void AverageWorker::on(Time now, const Mixed& event, Actions& actions) {
    if (passing_.is_of(event)) {
        passing_.on(event, actions);
        go_on_passing(now, actions);
        return take_held(now, actions);
    }
    if (!reduce_.is_of(event)) throw std::logic_error("a mean that the worker did not ask for");
    reduce_.on(event, actions);
    if (given_up_) return give_up(now, actions);
    go_on_reducing(now, actions);
    take_held(now, actions);
}

// Its wait for others below that are not done with their steps is one for the slowest.
void AverageWorker::go_on_reducing(Time now, Actions& actions) {
    if (renews_) return try_renew(now, actions);
    reduce_.go_on([this] { return next_id(); }, actions);
    if (!reduce_.done()) return;
    const bool owns = reduce_.owns();
    const TreeReduce::Sum sum = reduce_.take();
    if (!stopping_) {
        const Time held = std::clamp<Time>(sum.said.ready_ns - since_ns_, 0, now - since_ns_);
        books_.policy_wait_ns += held;
        since_ns_ += held;
        book(now);
    }
    phase_ = Phase::sharing;
    sharing_ = owns ? sum.mean.buffer : no_buffer;
    share_ = send(reduce_.parent(), Channel::gradient, sum.said, sum.mean, actions);
    if (reduce_.group() == among_.members().number()) return;
    // The next one is among others, some of whom may have told of theirs.
    reduce_ = among_.reduce(false);
    take_held(now, actions);
}

void AverageWorker::on(Time now, const Taken& event, Actions& actions) {
    count(event);
    if (event.id == bye_) {
        phase_ = Phase::finished;
        let_go(kept_.buffer, actions);
        reduce_.end(actions);
        among_.drop_held(actions);
        return finish(actions);
    }
    if (passing_.is_of(event)) {
        passing_.on(event, actions);
        go_on_passing(now, actions);
    } else if (event.id == share_) {
        book_queued(now, event.started_ns);
        book(now);
        share_ = 0;
        let_go(sharing_, actions);
        phase_ = Phase::waiting;
        if (given_up_) return give_up(now, actions);
        try_renew(now, actions);
    }
    take_held(now, actions);
    try_leave(actions);
}

// Nothing more is sent to it once it has handed on its part of the last round.
void AverageWorker::try_leave(Actions& actions) {
    if (!stopping_ || phase_ != Phase::waiting || sends_under_way_ > 0 || bye_ != 0) return;
    if (serial_ < last_serial_ && !given_up_) return;
    say_bye(actions);
}

Time& AverageWorker::account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::passing: return books.pull_moving_ns;
        case Phase::computing:
        case Phase::stepping: return books.compute_ns;
        case Phase::reducing: return books.push_queued_ns;
        case Phase::sharing: return books.push_moving_ns;
        case Phase::waiting:
        case Phase::down:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

WorkerRow AverageWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

void AverageWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    abandon(phase_ == Phase::computing, actions);
    phase_ = Phase::finished;
}

void AverageWorker::on(Time now, const Crashed&, Actions& actions) {
    book(now);
    lose(phase_ == Phase::computing, actions);
    reduce_.crash(actions);
    for (BufferId* buffer : {&kept_.buffer, &sharing_}) let_go(*buffer, actions);
    among_.crash(actions);
    passing_.drop(actions);
    passing_ = Passing(config_.worker + 1, config_.spread, false);
    reduce_ = among_.reduce(false);
    version_ = serial_ = last_serial_ = -1;
    share_ = 0;
    has_contributed_ = renews_ = given_up_ = false;
    phase_ = Phase::down;
}

void AverageWorker::on(Time now, const Restarted&, Actions&) {
    resume(now);
    phase_ = Phase::waiting;
}

template <class Other>
void AverageWorker::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a worker that averages is not told of");
}

std::string AverageWorker::waiting() const {
    switch (phase_) {
        case Phase::waiting:
            if (bye_ != 0) return "waits until its last word is taken by the driver";
            if (stopping_ && serial_ >= last_serial_)
                return "waits for messages under way before it says its last word";
            return "waits for the joint model";
        case Phase::passing:
            return passing_.sending() ? "passes the joint model on to worker " + std::to_string(passing_.sends_to() - 1)
                                      : "waits for the rest of the joint model";
        case Phase::computing: return "computes gradient " + std::to_string(steps_.record().worker_seq);
        case Phase::stepping: return "takes a step of its own";
        case Phase::reducing:
            return reduce_.waits_for() < 0 ? "adds what others have sent"
                                           : "waits for what worker " + std::to_string(reduce_.waits_for()) + " has";
        case Phase::sharing:
            return "waits until " +
                   (reduce_.parent() == 0 ? "the driver" : "worker " + std::to_string(reduce_.parent() - 1)) +
                   " takes what it has";
        case Phase::down: return "is down";
        case Phase::finished: return "";
    }
    return "";
}

std::string AverageWorker::describe() const {
    return "worker " + std::to_string(config_.worker) + " at version " + std::to_string(version_) + ": " +
           std::to_string(begun()) + " gradients begun, " + std::to_string(steps_.done()) + " of " +
           std::to_string(steps_.steps()) + " steps of the round taken; " + (finished() ? "finished" : waiting());
}

}  // namespace rubato
