#include "core/averaging/average_worker.hpp"

#include "core/worker_books.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

AverageWorker::AverageWorker(const AverageWorkerConfig& config)
    : config_(config),
      steps_(config.worker, config.data),
      broadcast_(config.worker + 1, config.data.lambda + 1),
      reduce_(config.worker, config.data.lambda) {
    books_.worker = config.worker;
}

void AverageWorker::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void AverageWorker::on(Time now, const Start& event, Actions&) {
    weights_ = event.weights;
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    since_ns_ = now;
}

void AverageWorker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* model = std::get_if<Model>(&event.message)) {
        on_model(now, event, *model, actions);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        reduce_.come(event.from - 1, {event.payload, *share});
        go_on_reducing(now, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        book(now);
        stopping_ = true;
        stop_version_ = stop->version;
        if (phase_ == Phase::computing) steps_.cancel(actions);
        try_leave(actions);
    } else {
        throw std::logic_error("a worker that averages was sent a message that is not for one");
    }
}

// Held up by the slowest worker, moving; the rest is the way of the last means and of the model to whom it came from.
void AverageWorker::on_model(Time now, const Delivered& event, const Model& model, Actions& actions) {
    if (!stopping_) {
        const Time wait = now - since_ns_;
        const Time moving = std::clamp<Time>(now - event.started_ns, 0, wait);
        const Time held = std::clamp<Time>(model.ready_ns - since_ns_, 0, wait - moving);
        books_.policy_wait_ns += held;
        books_.pull_moving_ns += moving;
        books_.pull_request_ns += wait - moving - held;
        ++books_.pulls;
    }
    version_ = model.version;
    steps_.begin(model.version, model.steps, model.learning_rate, std::exchange(since_ns_, now));
    if (event.payload.buffer != no_buffer) {
        let_go(weights_, actions);
        weights_ = event.payload.buffer;
        broadcast_.begin(model, event.payload);
        if (broadcast_.go_on([this] { return next_id(); }, actions)) ++sends_under_way_;
    }
    phase_ = Phase::passing;
    if (broadcast_.done()) go_on_with_steps(now, actions);
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
    steps_.note(event);
    if (stopping_) {
        actions.add<Release>(event.gradient);
        cancelled_ = true;
        return cut_short(now, actions);
    }
    ++books_.gradients;
    ++sends_under_way_;
    steps_.tell(now, next_id(), actions);
    book(now);
    if (config_.gradients)
        return contribute(now, {event.gradient, 0, config_.parameters}, static_cast<double>(steps_.samples()), actions);
    phase_ = Phase::stepping;
    steps_.step(std::exchange(weights_, no_buffer), event.gradient, next_id(), actions);
}

void AverageWorker::on(Time now, const Cancelled& event, Actions& actions) {
    steps_.note(event);
    cancelled_ = true;
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
    phase_ = Phase::reducing;
    reduce_.begin({mean, {version_, 1, weight, now}});
    go_on_reducing(now, actions);
}

void AverageWorker::on(Time now, const Mixed& event, Actions& actions) {
    if (!reduce_.is_of(event)) throw std::logic_error("a mean that the worker did not ask for");
    reduce_.on(event, actions);
    go_on_reducing(now, actions);
}

// Its wait for others below that are not done with their steps is one for the slowest.
void AverageWorker::go_on_reducing(Time now, Actions& actions) {
    reduce_.go_on([this] { return next_id(); }, actions);
    if (!reduce_.done()) return;
    const TreeReduce::Sum sum = reduce_.take();
    if (!stopping_) {
        const Time held = std::clamp<Time>(sum.said.ready_ns - since_ns_, 0, now - since_ns_);
        books_.policy_wait_ns += held;
        since_ns_ += held;
        book(now);
    }
    phase_ = Phase::sharing;
    sharing_ = sum.mean.buffer;
    share_ = next_id();
    ++sends_under_way_;
    actions.add<Send>(share_, reduce_parent(config_.worker) + 1, Channel::gradient, Message(sum.said), sum.mean);
}

void AverageWorker::on(Time now, const Taken& event, Actions& actions) {
    --sends_under_way_;
    steps_.on(event);
    if (event.id == bye_) {
        phase_ = Phase::finished;
        actions.workers.push_back(books_);
        let_go(weights_, actions);
        actions.add<Finish>();
        return;
    }
    if (broadcast_.is_of(event)) {
        broadcast_.on(event);
        if (broadcast_.go_on([this] { return next_id(); }, actions)) ++sends_under_way_;
        if (broadcast_.done()) go_on_with_steps(now, actions);
    } else if (event.id == share_) {
        if (!stopping_) {
            const Time queued = std::clamp<Time>(event.started_ns - since_ns_, 0, now - since_ns_);
            books_.push_queued_ns += queued;
            since_ns_ += queued;
        }
        book(now);
        share_ = 0;
        let_go(sharing_, actions);
        phase_ = Phase::waiting;
    }
    try_leave(actions);
}

// Nothing more is sent to it once it has handed on its part of the last round.
void AverageWorker::try_leave(Actions& actions) {
    if (!stopping_ || phase_ != Phase::waiting || version_ < stop_version_ || sends_under_way_ > 0 || bye_ != 0) return;
    bye_ = next_id();
    ++sends_under_way_;
    steps_.say_bye(bye_, cancelled_, actions);
}

Time& AverageWorker::account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::passing: return books.pull_moving_ns;
        case Phase::computing:
        case Phase::stepping: return books.compute_ns;
        case Phase::reducing: return books.push_queued_ns;
        case Phase::sharing: return books.push_moving_ns;
        case Phase::waiting:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

// What is under way at the end no longer serves the run.
void AverageWorker::book(Time now) {
    if (!stopping_ && phase_ != Phase::finished) account(books_) += now - since_ns_;
    since_ns_ = now;
}

WorkerRow AverageWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

void AverageWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    steps_.leave_over(phase_ == Phase::computing || cancelled_, actions);
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    actions.add<Finish>();
}

template <class Other>
void AverageWorker::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a worker that averages is not told of");
}

std::string AverageWorker::waiting() const {
    switch (phase_) {
        case Phase::waiting:
            if (bye_ != 0) return "waits until its last word is taken by the driver";
            if (stopping_ && version_ >= stop_version_)
                return "waits for messages under way before it says its last word";
            return "waits for the joint model, from " +
                   (version_ < 0 || broadcast_parent(config_.worker + 1) == 0
                        ? "the driver"
                        : "worker " + std::to_string(broadcast_parent(config_.worker + 1) - 1));
        case Phase::passing: return "passes the joint model on to worker " + std::to_string(broadcast_.sends_to() - 1);
        case Phase::computing: return "computes gradient " + std::to_string(steps_.record().worker_seq);
        case Phase::stepping: return "takes a step of its own";
        case Phase::reducing:
            return reduce_.waits_for() < 0 ? "adds what others have sent"
                                           : "waits for what worker " + std::to_string(reduce_.waits_for()) + " has";
        case Phase::sharing:
            return "waits until " +
                   (config_.worker == 0 ? "the driver" : "worker " + std::to_string(reduce_parent(config_.worker))) +
                   " takes what it has";
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
