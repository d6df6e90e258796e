#include "core/averaging/elastic_worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

ElasticWorker::ElasticWorker(const ElasticWorkerConfig& config, const WorkerState& state)
    : LocalWorker(config.worker, config.data, state), config_(config) {}

void ElasticWorker::step(Time now, const Event& event, Actions& actions) {
    book_hidden(now, share_ != 0 && (phase_ == Phase::computing || phase_ == Phase::stepping));
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void ElasticWorker::on(Time now, const Start& event, Actions&) {
    start(now, event.weights);
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
        book_wait(now, event.started_ns, 0);
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
    const Slice payload = difference == no_buffer ? Slice{} : Slice{difference, 0, config_.parameters};
    share_ = send(0, Channel::gradient, Share{model_.version, 1, weight, now}, payload, actions);
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
    send(0, Channel::control, Inquiry{steps_.version()}, {}, actions);
}

void ElasticWorker::on(Time now, const GradientReady& event, Actions& actions) {
    if (!take(now, event, actions)) return pause(now, actions);
    book(now);
    phase_ = Phase::stepping;
    take_step(event.gradient, actions);
}

void ElasticWorker::on(Time now, const Cancelled& event, Actions& actions) {
    take(event);
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
    count(event);
    if (event.id == bye_) {
        phase_ = Phase::finished;
        return finish(actions);
    }
    if (event.id == share_) {
        share_ = 0;
        if (moved_) let_go(difference_, actions);
        if (phase_ == Phase::sending) {
            book_queued(now, event.started_ns);
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
    say_bye(actions);
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

WorkerRow ElasticWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

void ElasticWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    abandon(phase_ == Phase::computing, actions);
    phase_ = Phase::finished;
}

void ElasticWorker::on(Time now, const Crashed&, Actions& actions) {
    book(now);
    lose(phase_ == Phase::computing, actions);
    for (BufferId* buffer : {&joint_, &difference_}) let_go(*buffer, actions);
    mixing_ = share_ = 0;
    moved_ = true;
    models_ = 0;
    models_expected_ = -1;
    phase_ = Phase::down;
}

void ElasticWorker::on(Time now, const Restarted&, Actions&) {
    resume(now);
    phase_ = Phase::waiting;
    asked_ns_ = now;
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
