#include "core/worker.hpp"

#include "core/dealer.hpp"
#include "core/worker_books.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

void Worker::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

inline void Worker::inquire(Actions& actions) {
    ++books_.inquiries;
    ++sends_under_way_;
    actions.send<Inquiry>(next_id(), config_.server, Channel::control, {}, version_);
}

// In real time a worker starts when its thread or process does, after the clock of the run.
void Worker::on(Time now, const Start& event, Actions&) {
    weights_ = event.weights;
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    since_ns_ = now;
}

void Worker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* weights = std::get_if<Weights>(&event.message)) {
        if (weights_ != no_buffer) actions.add<Release>(weights_);  // none after a restart
        weights_ = event.payload.buffer;
        version_ = weights->version;
        let_go(local_, actions);
        ++books_.pulls;
        on_reply(now, event, *weights, actions);
    } else if (const auto* proceed = std::get_if<Proceed>(&event.message)) {
        if (!proceed->onward) let_go(local_, actions);  // a pull, for which there was nothing newer
        on_reply(now, event, *proceed, actions);
    } else if (const auto* ok = std::get_if<Ok>(&event.message)) {
        on_ok(now, event, *ok, actions);
    } else if (const auto* halt = std::get_if<Halt>(&event.message)) {
        on_halt(*halt, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        on_stop(now, *stop, actions);
    } else {
        throw std::logic_error("a worker was sent a message that is not for workers");
    }
}

template <class Reply>
void Worker::on_reply(Time now, const Delivered& event, const Reply& reply, Actions& actions) {
    if (reply.version != version_)
        throw std::logic_error("a worker was told to proceed on weights that it does not hold");
    ++replies_;
    if (stopping_) return try_leave(now, actions);
    const Time asked_ns = since_ns_;
    book_wait(books_, since_ns_, now, {0, event.sent_ns, reply.held_ns, reply.queued_ns, event.started_ns, now});
    since_ns_ = now;
    if (reply.batch.count == 0) return;  // no batch for this worker in this round: it keeps the weights and waits on
    record_ = Push{};
    record_.read_version = version_;
    record_.worker_seq = begun_;
    record_.batch = reply.batch;
    record_.pull_ns = asked_ns;
    record_.begin_ns = now;
    record_.count = 0;
    begun_ += config_.batch_size > 0 ? gradients_in(reply.batch, config_.batch_size) : 1;
    done_ = 0;
    rate_ = reply.learning_rate;
    compute_next(actions);
    if (halted_) actions.add<Cancel>(compute_);  // overtaken by the word that it is not wanted
}

void Worker::compute_next(Actions& actions) {
    phase_ = Phase::computing;
    compute_ = next_id();
    Batch batch = record_.batch;
    batch.first += done_;
    batch.count -= done_;
    if (config_.batch_size > 0) batch.count = std::min(batch.count, config_.batch_size);
    actions.add<Compute>(compute_, local_ != no_buffer ? local_ : weights_, batch, record_.worker_seq + record_.count);
    ++record_.count;
}

void Worker::on_ok(Time now, const Delivered& event, const Ok& ok, Actions& actions) {
    if (stopping_) return;
    book_wait(books_, since_ns_, now, {0, event.sent_ns, ok.held_ns, ok.queued_ns, now, now});
    since_ns_ = now;
    inquire(actions);
}

void Worker::on_halt(const Halt& halt, Actions& actions) {
    const bool under_way = phase_ == Phase::computing || phase_ == Phase::stepping;
    const bool computes = under_way && record_.worker_seq == halt.worker_seq;
    if (stopping_ || (!computes && halt.worker_seq != begun_)) return;
    halted_ = true;
    if (computes && phase_ == Phase::computing) actions.add<Cancel>(compute_);
}

void Worker::give_up(Time now, Actions& actions) {
    books_.compute_ns += now - since_ns_;
    since_ns_ = now;
    phase_ = Phase::waiting;
    halted_ = false;
    let_go(sum_, actions);
    ++books_.inquiries;
    ++sends_under_way_;
    push_ = next_id();
    actions.send<GaveUp>(push_, config_.server, Channel::control, {}, version_, record_);
}

void Worker::on(Time now, const GradientReady& event, Actions& actions) {
    if (record_.count == 1) record_.begin_ns = event.begin_ns;
    record_.end_ns = event.end_ns;
    const std::int32_t left = record_.batch.count - done_;
    const std::int32_t samples = config_.batch_size > 0 ? std::min(left, config_.batch_size) : left;
    if (samples == record_.batch.count)
        record_.loss = event.loss;
    else
        record_.loss += event.loss * (static_cast<double>(samples) / static_cast<double>(record_.batch.count));
    if (stopping_) {
        actions.add<Release>(event.gradient);
        return cut_short(now, actions);
    }
    if (halted_) {  // the word came too late to cut it short
        actions.add<Release>(event.gradient);
        return give_up(now, actions);
    }
    ++books_.gradients;
    if (samples == record_.batch.count && !config_.keeps_local) return push(now, event.gradient, actions);
    take_local_step(event.gradient, samples, samples == left, actions);
}

// The first gradient is the sum to begin with. After the last one there is nothing to step for, unless the worker goes
// on from there.
void Worker::take_local_step(BufferId gradient, std::int32_t samples, bool last, Actions& actions) {
    phase_ = Phase::stepping;
    gradient_ = gradient;
    done_ += samples;
    compute_ = next_id();
    auto& step = actions.add<LocalStep>();
    step.id = compute_;
    step.gradient = gradient;
    step.learning_rate = rate_;
    if (!last || config_.keeps_local) {
        step.weights = local_ == no_buffer ? weights_ : no_buffer;
        step.local = std::exchange(local_, no_buffer);
    }
    if (sum_ == no_buffer) return;
    step.sum = std::exchange(sum_, no_buffer);
    step.weight = static_cast<double>(samples) / static_cast<double>(config_.batch_size);
}

void Worker::on(Time now, const Stepped& event, Actions& actions) {
    if (event.local != no_buffer) local_ = event.local;
    if (event.sum == no_buffer) {
        sum_ = gradient_;
    } else {
        actions.add<Release>(gradient_);
        sum_ = event.sum;
    }
    gradient_ = no_buffer;
    if (stopping_) return cut_short(now, actions);
    if (halted_) return give_up(now, actions);
    if (done_ < record_.batch.count) return compute_next(actions);
    push(now, std::exchange(sum_, no_buffer), actions);
}

void Worker::push(Time now, BufferId gradient, Actions& actions) {
    books_.compute_ns += now - since_ns_;
    since_ns_ = now;
    record_.push_ns = now;
    phase_ = Phase::pushing;
    gradient_ = gradient;
    push_ = next_id();
    ++pushes_;
    ++sends_under_way_;
    actions.send<Push>(push_, config_.server, Channel::gradient, {gradient_, 0, config_.parameters}, record_);
}

void Worker::on(Time now, const Cancelled& event, Actions& actions) {
    if (record_.count == 1) record_.begin_ns = event.begin_ns;
    if (!stopping_) return give_up(now, actions);
    cut_short(now, actions);
}

void Worker::cut_short(Time now, Actions& actions) {
    let_go(sum_, actions);
    cancelled_ = true;
    phase_ = Phase::waiting;
    try_leave(now, actions);
}

void Worker::on(Time now, const Taken& event, Actions& actions) {
    --sends_under_way_;
    if (event.id == push_ && phase_ != Phase::pushing) {
        push_ = 0;
    } else if (event.id == push_) {
        if (!stopping_) {
            book_push(books_, since_ns_, now, event.started_ns);
            since_ns_ = now;
        }
        push_ = 0;
        actions.add<Release>(gradient_);
        gradient_ = no_buffer;
        phase_ = Phase::waiting;
        if (!stopping_ && config_.word == Word::inquiry) inquire(actions);
        if (!stopping_) return;
    } else if (event.id == bye_) {
        phase_ = Phase::finished;
        actions.workers.push_back(books_);
        let_go(local_, actions);
        let_go(weights_, actions);
        actions.add<Finish>();
        return;
    }
    if (stopping_) try_leave(now, actions);
}

// What is still under way at the end no longer serves the run.
void Worker::close_books(Time now) {
    if (phase_ != Phase::finished) open_account(books_) += now - since_ns_;
}

Time& Worker::open_account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::computing:
        case Phase::stepping: return books.compute_ns;
        case Phase::pushing: return books.push_moving_ns;
        case Phase::waiting:
        case Phase::down:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

WorkerRow Worker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return open_account(row); });
}

void Worker::on_stop(Time now, const Stop& stop, Actions& actions) {
    stopping_ = true;
    replies_expected_ = stop.replies;
    close_books(now);
    if (phase_ == Phase::computing && !halted_) actions.add<Cancel>(compute_);
    try_leave(now, actions);
}

void Worker::on(Time now, const Abandoned&, Actions& actions) {
    if (!stopping_) close_books(now);
    state_lost(Outcome::leftover, actions);
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    actions.add<Finish>();
}

void Worker::state_lost(Outcome of_push, Actions& actions) const {
    if (phase_ == Phase::pushing) {
        actions.gradients.push_back(unapplied_row(config_.worker, record_, of_push));
    } else if (phase_ == Phase::computing || phase_ == Phase::stepping || cancelled_ || push_ != 0) {
        actions.gradients.push_back(unapplied_row(config_.worker, record_, Outcome::cancelled));
        actions.gradients.back().end_ns = actions.gradients.back().push_ns = -1;
    }
}

// Of a gradient on its way the row has the time of its push, which tells it from one that was still computed.
void Worker::on(Time now, const Crashed&, Actions& actions) {
    if (!stopping_) close_books(now);
    state_lost(Outcome::cancelled, actions);
    for (BufferId* buffer : {&gradient_, &sum_, &local_, &weights_}) let_go(*buffer, actions);
    version_ = -1;
    compute_ = bye_ = push_ = 0;
    sends_under_way_ = pushes_ = replies_ = 0;
    replies_expected_ = -1;
    stopping_ = cancelled_ = halted_ = false;
    phase_ = Phase::down;
    since_ns_ = now;
}

void Worker::on(Time now, const Restarted&, Actions&) {
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    phase_ = Phase::waiting;
    since_ns_ = now;
}

void Worker::try_leave(Time, Actions& actions) {
    if (phase_ != Phase::waiting || sends_under_way_ > 0 || replies_ < replies_expected_ || bye_ != 0) return;
    bye_ = next_id();
    ++sends_under_way_;
    actions.send<Bye>(bye_, config_.server, Channel::control, {}, pushes_, cancelled_, cancelled_ ? record_ : Push{});
}

void Worker::on(Time, const Folded&, Actions&) {
    throw std::logic_error("a worker never folds");
}
void Worker::on(Time, const Applied&, Actions&) {
    throw std::logic_error("a worker never updates");
}
void Worker::on(Time, const Evaluated&, Actions&) {
    throw std::logic_error("a worker never evaluates");
}
void Worker::on(Time, const Saved&, Actions&) {
    throw std::logic_error("a worker never saves");
}
void Worker::on(Time, const Interrupted&, Actions&) {
    throw std::logic_error("only the server is told of signals");
}
void Worker::on(Time, const PeerLost&, Actions&) {
    throw std::logic_error("only the server is told of lost peers");
}
void Worker::on(Time, const PeerDown&, Actions&) {
    throw std::logic_error("only the server is told of peers that are down");
}
void Worker::on(Time, const PeerBack&, Actions&) {
    throw std::logic_error("only the server is told of peers that are back");
}
void Worker::on(Time, const Placed&, Actions&) {
    throw std::logic_error("a worker of one server has nothing to place");
}
void Worker::on(Time, const LayerReady&, Actions&) {
    throw std::logic_error("a worker of a server asks for no layers");
}
void Worker::on(Time, const Summed&, Actions&) {
    throw std::logic_error("a worker of a server asks for no sum of all workers");
}
void Worker::on(Time, const Mixed&, Actions&) {
    throw std::logic_error("a worker that pushes gradients has nothing to mix");
}
void Worker::on(Time, const TimerFired&, Actions&) {}

std::string Worker::waiting() const {
    switch (phase_) {
        case Phase::waiting:
            if (bye_ != 0) return "waits until its last word is taken by the server";
            if (stopping_) return "waits for messages under way before it says its last word";
            switch (config_.word) {
                case Word::broadcast: return "waits for the server's broadcast";
                case Word::inquiry: return "waits for the server's answer to its inquiry";
                case Word::ok: return "waits for the server's OK and its weights";
            }
            return "";
        case Phase::computing: return "computes gradient " + std::to_string(record_.worker_seq + record_.count - 1);
        case Phase::stepping: return "takes a step of its own";
        case Phase::pushing: return "waits until the server takes gradient " + std::to_string(record_.worker_seq);
        case Phase::down: return "is down";
        case Phase::finished: return "";
    }
    return "";
}

std::string Worker::describe() const {
    return "worker " + std::to_string(config_.worker) + " at version " + std::to_string(version_) + ": " +
           std::to_string(begun_) + " gradients begun, " + std::to_string(pushes_) + " pushed; " +
           (finished() ? "finished" : waiting());
}

}  // namespace rubato
