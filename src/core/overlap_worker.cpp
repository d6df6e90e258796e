#include "core/overlap_worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace rubato {

void OverlapWorker::step(Time now, const Event& event, Actions& actions) {
    if (phase_ == Phase::computing && !stopping_ && (push_ != 0 || asked_)) books_.hidden_ns += now - seen_ns_;
    seen_ns_ = now;
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void OverlapWorker::on(Time now, const Start& event, Actions& actions) {
    weights_ = event.weights;
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    since_ns_ = asked_ns_ = now;
    if (!is_fed()) return;
    answer_ = {{now, now, 0, 0, now, now}, true, {}};  // no word is to come
    try_begin(now, actions);
}

void OverlapWorker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* weights = std::get_if<Weights>(&event.message)) {
        let_go(next_weights_, actions);
        next_weights_ = event.payload.buffer;
        next_version_ = weights->version;
        ++books_.pulls;
        if (is_fed()) return on_fed(now, event, actions);
        on_reply(now, event, *weights, actions);
    } else if (const auto* proceed = std::get_if<Proceed>(&event.message)) {
        on_reply(now, event, *proceed, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        on_stop(now, event.from, *stop, actions);
    } else {
        throw std::logic_error("an overlapping worker was sent a message that is not for one");
    }
}

template <class Reply>
void OverlapWorker::on_reply(Time now, const Delivered& event, const Reply& reply, Actions& actions) {
    if (reply.version != next_version_)
        throw std::logic_error("a worker was told to proceed on weights that it does not hold");
    ++replies_;
    asked_ = false;
    if (stopping_) return try_leave(now, actions);
    answer_ = {{asked_ns_, event.sent_ns, reply.held_ns, reply.queued_ns, event.started_ns, now}, true, reply.batch};
    try_begin(now, actions);
}

void OverlapWorker::on_fed(Time now, const Delivered& event, Actions& actions) {
    ++replies_;
    if (stopping_) return try_leave(now, actions);
    answer_ = {{event.sent_ns, event.sent_ns, 0, 0, event.started_ns, now}, true, {}};
    pass_on(actions);
}

// To each one message at a time, and of those that come meanwhile the newest: a slow one holds nobody up.
void OverlapWorker::pass_on(Actions& actions) {
    if (stopping_) return;
    const BufferId newest = next_weights_ != no_buffer ? next_weights_ : weights_;
    sends_under_way_ += feed(
        receivers_, next_version_, {newest, 0, config_.parameters}, [this] { return next_id(); }, actions);
}

void OverlapWorker::try_begin(Time now, Actions& actions) {
    const bool latest = config_.pull == Pull::latest;
    if (stopping_ || phase_ != Phase::waiting) return;
    // Without any weights of its own, or before the first word, there is nothing to begin with.
    if (!answer_.there && (!latest || weights_ == no_buffer || begun_ == config_.begun)) return;
    const Batch batch = latest ? own_batch(config_.data, config_.worker, begun_) : answer_.batch;
    if (answer_.there) book_wait(books_, since_ns_, now, answer_);
    if (next_weights_ != no_buffer) {
        let_go(weights_, actions);
        weights_ = std::exchange(next_weights_, no_buffer);
        version_ = next_version_;
        weights_asked_ns_ = answer_.asked_ns;
    } else if (answer_.there) {
        weights_asked_ns_ = answer_.asked_ns;  // asked, and there was nothing newer
    }
    answer_ = {};
    since_ns_ = now;
    if (batch.count == 0) return;  // it has no part of the data
    record_ = Push{};
    record_.read_version = version_;
    record_.worker_seq = begun_++;
    record_.batch = batch;
    record_.pull_ns = weights_asked_ns_;
    record_.begin_ns = now;
    phase_ = Phase::computing;
    compute_ = next_id();
    actions.add<Compute>(compute_, weights_, batch, record_.worker_seq);
    if (!asked_ && !is_fed()) inquire(now, actions);
}

void OverlapWorker::inquire(Time now, Actions& actions) {
    asked_ = true;
    asked_ns_ = now;
    ++books_.inquiries;
    ++sends_under_way_;
    actions.send<Inquiry>(next_id(), config_.server, Channel::control, {}, next_version_);
}

void OverlapWorker::on(Time now, const GradientReady& event, Actions& actions) {
    record_.begin_ns = event.begin_ns;
    record_.end_ns = event.end_ns;
    record_.loss = event.loss;
    compute_ = 0;
    ready_ = event.gradient;
    if (stopping_) return cut_short(now, actions);
    ++books_.gradients;
    books_.compute_ns += now - since_ns_;
    since_ns_ = now;
    phase_ = Phase::ready;
    if (push_ == 0) push(now, actions);
    try_begin(now, actions);
}

void OverlapWorker::push(Time now, Actions& actions) {
    record_.push_ns = now;
    pushed_ = record_;
    pushing_ = std::exchange(ready_, no_buffer);
    phase_ = Phase::waiting;
    push_ = next_id();
    ++pushes_;
    ++sends_under_way_;
    actions.send<Push>(push_, config_.server, Channel::gradient, {pushing_, 0, config_.parameters}, pushed_);
}

void OverlapWorker::on(Time now, const Taken& event, Actions& actions) {
    --sends_under_way_;
    if (was_fed(receivers_, event.id)) {
        pass_on(actions);
    } else if (event.id == push_) {
        if (phase_ == Phase::ready && !stopping_) {
            book_push(books_, since_ns_, now, event.started_ns);
            since_ns_ = now;
        }
        push_ = 0;
        let_go(pushing_, actions);
        if (phase_ == Phase::ready && !stopping_) {
            push(now, actions);
            try_begin(now, actions);
        }
    } else if (event.id == bye_) {
        phase_ = Phase::finished;
        actions.workers.push_back(books_);
        let_go(next_weights_, actions);
        let_go(weights_, actions);
        actions.add<Finish>();
        return;
    }
    if (stopping_) try_leave(now, actions);
}

void OverlapWorker::on(Time now, const Cancelled& event, Actions& actions) {
    record_.begin_ns = event.begin_ns;
    compute_ = 0;
    cut_short(now, actions);
}

void OverlapWorker::cut_short(Time now, Actions& actions) {
    let_go(ready_, actions);
    cancelled_ = true;
    phase_ = Phase::waiting;
    try_leave(now, actions);
}

// One that is fed hears of the end twice: from its leaf, and from its feeder, which knows how many weights are to come.
void OverlapWorker::on_stop(Time now, RoleId from, const Stop& stop, Actions& actions) {
    ++stops_;
    if (!is_fed() || from == config_.feeder) {
        replies_expected_ = stop.replies;
        for (const Receiver& to : receivers_) {
            ++sends_under_way_;
            actions.send<Stop>(next_id(), to.role, Channel::control, {}, to.sent);
        }
    }
    if (stopping_) return try_leave(now, actions);
    stopping_ = true;
    close_books(now);
    if (phase_ == Phase::computing) actions.add<Cancel>(compute_);
    if (phase_ == Phase::ready) return cut_short(now, actions);
    try_leave(now, actions);
}

void OverlapWorker::try_leave(Time, Actions& actions) {
    if (phase_ != Phase::waiting || sends_under_way_ > 0 || replies_ < replies_expected_ || bye_ != 0) return;
    if (stops_ < (is_fed() ? 2 : 1)) return;
    bye_ = next_id();
    ++sends_under_way_;
    actions.send<Bye>(bye_, config_.server, Channel::control, {}, pushes_, cancelled_, cancelled_ ? record_ : Push{});
}

void OverlapWorker::on(Time now, const Abandoned&, Actions& actions) {
    if (!stopping_) close_books(now);
    state_lost(Outcome::leftover, actions);
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    actions.add<Finish>();
}

void OverlapWorker::state_lost(Outcome of_push, Actions& actions) const {
    if (push_ != 0) actions.gradients.push_back(unapplied_row(config_.worker, pushed_, of_push));
    if (phase_ != Phase::computing && phase_ != Phase::ready && !cancelled_) return;
    actions.gradients.push_back(unapplied_row(config_.worker, record_, Outcome::cancelled));
    actions.gradients.back().end_ns = actions.gradients.back().push_ns = -1;
}

void OverlapWorker::on(Time now, const Crashed&, Actions& actions) {
    if (!stopping_) close_books(now);
    state_lost(Outcome::cancelled, actions);
    for (BufferId* buffer : {&ready_, &pushing_, &next_weights_, &weights_}) let_go(*buffer, actions);
    version_ = next_version_ = -1;
    answer_ = {};
    compute_ = push_ = bye_ = 0;
    sends_under_way_ = pushes_ = replies_ = 0;
    replies_expected_ = -1;
    stopping_ = cancelled_ = false;
    stops_ = 0;
    asked_ = true;  // it is spoken to when it is back
    phase_ = Phase::down;
    since_ns_ = now;
}

void OverlapWorker::on(Time now, const Restarted&, Actions&) {
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    phase_ = Phase::waiting;
    since_ns_ = asked_ns_ = now;
}

template <class Other>
void OverlapWorker::on(Time, const Other&, Actions&) {
    if constexpr (!std::is_same_v<Other, TimerFired>)
        throw std::logic_error("a worker was told of what is none of its business: " + std::string(Other::kind));
}

void OverlapWorker::close_books(Time now) {
    if (phase_ != Phase::finished) open_account(books_) += now - since_ns_;
}

Time& OverlapWorker::open_account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::computing: return books.compute_ns;
        case Phase::ready: return books.push_moving_ns;
        case Phase::waiting:
        case Phase::down:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

WorkerRow OverlapWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return open_account(row); });
}

std::string OverlapWorker::waiting() const {
    switch (phase_) {
        case Phase::waiting:
            if (bye_ != 0) return "waits until its last word is taken by the server";
            if (stopping_) return "waits for messages under way before it says its last word";
            return "waits for the server's answer to its inquiry";
        case Phase::computing: return "computes gradient " + std::to_string(record_.worker_seq);
        case Phase::ready:
            return "waits with gradient " + std::to_string(record_.worker_seq) + " until the server takes gradient " +
                   std::to_string(pushed_.worker_seq);
        case Phase::down: return "is down";
        case Phase::finished: break;
    }
    return "";
}

std::string OverlapWorker::describe() const {
    return "worker " + std::to_string(config_.worker) + " on version " + std::to_string(version_) + ": " +
           (finished() ? "finished" : waiting());
}

}  // namespace rubato
