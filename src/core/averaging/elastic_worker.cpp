#include "core/averaging/elastic_worker.hpp"

#include "core/worker_books.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

ElasticWorker::ElasticWorker(const ElasticWorkerConfig& config, const WorkerState& state)
    : config_(config), steps_(config.worker, config.data, state.begun) {
    books_ = state.books;
    books_.worker = config.worker;
}

void ElasticWorker::step(Time now, const Event& event, Actions& actions) {
    const bool busy = phase_ == Phase::computing || phase_ == Phase::stepping;
    if (busy && !stopping_ && share_ != 0) books_.hidden_ns += now - seen_ns_;
    seen_ns_ = now;
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void ElasticWorker::on(Time now, const Start& event, Actions&) {
    weights_ = event.weights;
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    since_ns_ = now;
}

void ElasticWorker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* model = std::get_if<Model>(&event.message)) {
        on_model(now, event, *model, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        book(now);
        stopping_ = true;
        models_expected_ = stop->replies;
        if (phase_ == Phase::computing) steps_.cancel(actions);
        if (phase_ == Phase::held_up) phase_ = Phase::waiting;
        if (phase_ == Phase::waiting) pause(now, actions);
    } else {
        throw std::logic_error("an elastic worker was sent a message that is not for one");
    }
}

void ElasticWorker::on_model(Time now, const Delivered& event, const Model& model, Actions& actions) {
    ++models_;
    model_ = model;
    if (!stopping_) {
        const Time moving = std::clamp<Time>(now - event.started_ns, 0, now - since_ns_);
        books_.pull_moving_ns += moving;
        books_.pull_request_ns += now - since_ns_ - moving;
        ++books_.pulls;
    }
    since_ns_ = now;
    if (config_.deltas) {
        const bool first = event.payload.buffer == no_buffer;
        return adopt(first ? std::exchange(weights_, no_buffer) : event.payload.buffer, now, actions);
    }
    if (event.payload.buffer == no_buffer || weights_ == no_buffer) {  // the first word, or it is back
        if (weights_ == no_buffer) weights_ = event.payload.buffer;
        if (stopping_) return try_leave(actions);
        steps_.begin(model.version, model.steps, model.learning_rate, asked_ns_);
        return go_on_with_steps(now, actions);
    }
    joint_ = event.payload.buffer;
    if (stopping_) {
        let_go(joint_, actions);
        return send_share(now, no_buffer, 0, actions);
    }
    Mix& difference = mix(Phase::parting, actions);
    difference.add(weights_, config_.alpha);
    difference.add(joint_, -config_.alpha);
}

Mix& ElasticWorker::mix(Phase phase, Actions& actions) {
    phase_ = phase;
    Mix& it = actions.add<Mix>();
    it.id = mixing_ = next_id();
    return it;
}

void ElasticWorker::adopt(BufferId joint, Time now, Actions& actions) {
    joint_ = joint;
    if (stopping_) return pause(now, actions);
    mix(Phase::adopting, actions).add(joint_, 1);
}

void ElasticWorker::subtract(Actions& actions) {
    Mix& delta = mix(Phase::subtracting, actions);
    delta.add(joint_, 1);
    delta.add(weights_, -1);
    delta.out = std::exchange(joint_, no_buffer);
}

// The difference goes its way; the move is the worker's own.
void ElasticWorker::on(Time now, const Mixed& event, Actions& actions) {
    if (event.id != mixing_) throw std::logic_error("a difference that the worker did not ask for");
    mixing_ = 0;
    if (phase_ == Phase::adopting) {
        weights_ = event.out;
        steps_.begin(model_.version, model_.steps, model_.learning_rate, asked_ns_);
        return go_on_with_steps(now, actions);
    }
    if (phase_ == Phase::subtracting) {
        book(now);
        let_go(weights_, actions);
        difference_ = event.out;
        asked_ns_ = now;
        phase_ = Phase::sending;
        return send_share(now, difference_, steps_.done(), actions);
    }
    if (phase_ == Phase::parting) {
        let_go(joint_, actions);
        difference_ = event.out;
        moved_ = false;
        send_share(now, difference_, steps_.done(), actions);
        Mix& own = mix(Phase::moving, actions);
        own.add(weights_, 1);
        own.add(difference_, -1);
        own.out = std::exchange(weights_, no_buffer);
        return;
    }
    weights_ = event.out;
    moved_ = true;
    if (share_ == 0) let_go(difference_, actions);
    if (stopping_) return pause(now, actions);
    book(now);
    steps_.begin(model_.version, model_.steps, model_.learning_rate, asked_ns_);
    go_on_with_steps(now, actions);
}

void ElasticWorker::send_share(Time now, BufferId difference, double weight, Actions& actions) {
    share_ = next_id();
    ++sends_under_way_;
    const Slice payload = difference == no_buffer ? Slice{} : Slice{difference, 0, config_.parameters};
    actions.add<Send>(share_, 0, Channel::gradient, Message(Share{model_.version, 1, weight, now}), payload);
}

void ElasticWorker::go_on_with_steps(Time now, Actions& actions) {
    if (stopping_) return pause(now, actions);
    book(now);
    if (steps_.compute(now, weights_, next_id(), actions)) {
        phase_ = Phase::computing;
        return;
    }
    phase_ = Phase::waiting;
    if (steps_.done() == 0) return;  // without a part of the data it has nothing to say
    if (config_.deltas) return subtract(actions);
    ask(now, actions);
}

void ElasticWorker::ask(Time now, Actions& actions) {
    if (share_ != 0) {
        phase_ = Phase::held_up;
        return;
    }
    phase_ = Phase::waiting;
    asked_ns_ = now;
    ++books_.inquiries;
    ++sends_under_way_;
    actions.send<Inquiry>(next_id(), 0, Channel::control, {}, steps_.version());
}

void ElasticWorker::on(Time now, const GradientReady& event, Actions& actions) {
    steps_.note(event);
    if (stopping_) {
        actions.add<Release>(event.gradient);
        cancelled_ = true;
        return pause(now, actions);
    }
    ++books_.gradients;
    ++sends_under_way_;
    steps_.tell(now, next_id(), actions);
    book(now);
    phase_ = Phase::stepping;
    steps_.step(std::exchange(weights_, no_buffer), event.gradient, next_id(), actions);
}

void ElasticWorker::on(Time now, const Cancelled& event, Actions& actions) {
    steps_.note(event);
    cancelled_ = true;
    pause(now, actions);
}

void ElasticWorker::on(Time now, const Applied& event, Actions& actions) {
    weights_ = steps_.on(event, actions);
    go_on_with_steps(now, actions);
}

// A joint model that it was sent, and has made no delta of, is answered all the same.
void ElasticWorker::pause(Time now, Actions& actions) {
    phase_ = Phase::waiting;
    if (config_.deltas && joint_ != no_buffer) {
        let_go(joint_, actions);
        let_go(weights_, actions);
        send_share(now, no_buffer, 0, actions);
    }
    try_leave(actions);
}

void ElasticWorker::on(Time now, const Taken& event, Actions& actions) {
    --sends_under_way_;
    steps_.on(event);
    if (event.id == bye_) {
        phase_ = Phase::finished;
        actions.workers.push_back(books_);
        let_go(weights_, actions);
        actions.add<Finish>();
        return;
    }
    if (event.id == share_) {
        share_ = 0;
        if (moved_) let_go(difference_, actions);
        if (phase_ == Phase::sending) {
            if (!stopping_) {
                const Time queued = std::clamp<Time>(event.started_ns - since_ns_, 0, now - since_ns_);
                books_.push_queued_ns += queued;
                since_ns_ += queued;
            }
            book(now);
            phase_ = Phase::waiting;
        }
        if (phase_ == Phase::held_up) {
            book(now);
            ask(now, actions);
        }
    }
    try_leave(actions);
}

void ElasticWorker::try_leave(Actions& actions) {
    if (!stopping_ || phase_ != Phase::waiting || models_ < models_expected_ || sends_under_way_ > 0 || bye_ != 0)
        return;
    bye_ = next_id();
    ++sends_under_way_;
    steps_.say_bye(bye_, cancelled_, actions);
}

Time& ElasticWorker::account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::computing:
        case Phase::stepping: return books.compute_ns;
        case Phase::held_up: return books.push_queued_ns;
        case Phase::parting:
        case Phase::moving:
        case Phase::adopting: return books.pull_moving_ns;
        case Phase::subtracting: return books.push_queued_ns;
        case Phase::sending: return books.push_moving_ns;
        case Phase::waiting:
        case Phase::down:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

// What is under way at the end no longer serves the run.
void ElasticWorker::book(Time now) {
    if (!stopping_ && phase_ != Phase::finished) account(books_) += now - since_ns_;
    since_ns_ = now;
}

WorkerRow ElasticWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

void ElasticWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    steps_.leave_over(phase_ == Phase::computing || cancelled_, actions);
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    actions.add<Finish>();
}

void ElasticWorker::on(Time now, const Crashed&, Actions& actions) {
    book(now);
    steps_.crash(phase_ == Phase::computing || cancelled_, actions);
    for (BufferId* buffer : {&weights_, &joint_, &difference_}) let_go(*buffer, actions);
    mixing_ = share_ = bye_ = 0;
    moved_ = true;
    models_ = sends_under_way_ = 0;
    models_expected_ = -1;
    stopping_ = cancelled_ = false;
    phase_ = Phase::down;
}

void ElasticWorker::on(Time now, const Restarted&, Actions&) {
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    phase_ = Phase::waiting;
    since_ns_ = asked_ns_ = now;
}

template <class Other>
void ElasticWorker::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that an elastic worker is not told of");
}

std::string ElasticWorker::waiting() const {
    switch (phase_) {
        case Phase::waiting:
            if (bye_ != 0) return "waits until its last word is taken by the server";
            if (stopping_) return "waits for messages under way before it says its last word";
            return models_ == 0 ? "waits for the server's first word" : "waits for the joint model";
        case Phase::computing: return "computes gradient " + std::to_string(steps_.record().worker_seq);
        case Phase::stepping: return "takes a step of its own";
        case Phase::held_up: return "waits until the server takes its last difference";
        case Phase::parting:
        case Phase::moving: return "moves towards the joint model";
        case Phase::adopting: return "takes over the joint model";
        case Phase::subtracting: return "makes its difference ready";
        case Phase::sending: return "waits until the server takes its difference";
        case Phase::down: return "is down";
        case Phase::finished: return "";
    }
    return "";
}

std::string ElasticWorker::describe() const {
    return "worker " + std::to_string(config_.worker) + ", last at version " + std::to_string(steps_.version()) + ": " +
           std::to_string(begun()) + " gradients begun, " + std::to_string(steps_.done()) + " of " +
           std::to_string(steps_.steps()) + " steps taken; " + (finished() ? "finished" : waiting());
}

}  // namespace rubato
