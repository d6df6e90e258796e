// What all kinds of workers that take steps of their own have in common: their steps and weights, their books, their
// last word. Who derives from it says when steps are taken, and what is exchanged between them.
#pragma once

#include "core/averaging/local_steps.hpp"
#include "core/let_go.hpp"
#include "core/worker_books.hpp"

#include <algorithm>

namespace rubato {

class LocalWorker {
public:
    std::int64_t begun() const { return steps_.begun(); }
    bool operator==(const LocalWorker&) const = default;

protected:
    LocalWorker(WorkerId worker, const DealerConfig& data, const WorkerState& state)
        : has_data_(own_batch(data, worker, 0).count > 0), steps_(worker, data, state.begun), books_(state.books) {
        books_.worker = worker;
    }

    void start(Time now, BufferId weights) {
        weights_ = weights;
        resume(now);
    }
    /// From here on its time counts: what passed since its books were closed was idle.
    void resume(Time now) {
        books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
        since_ns_ = now;
    }
    /// The time since the last call goes to `account`. What is under way at the end no longer serves the run.
    void book(Time now, Time& account) {
        if (!stopping_) account += now - since_ns_;
        since_ns_ = now;
    }

    /// Since the last call it has computed while a message of its own was under way, if `beside`.
    void book_hidden(Time now, bool beside) {
        if (beside && !stopping_) books_.hidden_ns += now - seen_ns_;
        seen_ns_ = now;
    }
    /// It has waited for a model until now: held up by others, who had done their parts at ready_ns, and moving since
    /// started_ns; the rest is the way of what they have made, and of the model to whom it came from.
    void book_wait(Time now, Time started_ns, Time ready_ns) {
        const Time wait = now - since_ns_;
        const Time moving = std::clamp<Time>(now - started_ns, 0, wait);
        const Time held = std::clamp<Time>(ready_ns - since_ns_, 0, wait - moving);
        books_.policy_wait_ns += held;
        books_.pull_moving_ns += moving;
        books_.pull_request_ns += wait - moving - held;
        since_ns_ = now;
    }
    /// What it has sent has been taken, and began to move at started_ns.
    void book_queued(Time now, Time started_ns) {
        if (stopping_) return;
        const Time queued = std::clamp<Time>(started_ns - since_ns_, 0, now - since_ns_);
        books_.push_queued_ns += queued;
        since_ns_ += queued;
    }

    template <class T>
    ActionId send(RoleId to, Channel channel, const T& said, const Slice& payload, Actions& actions) {
        ++sends_under_way_;
        const ActionId id = next_id();
        actions.add<Send>(id, to, channel, Message(said), payload);
        return id;
    }
    /// Whether the gradient counts: it is told of then, and a step is to be made of it. Otherwise the run ends.
    bool take(Time now, const GradientReady& event, Actions& actions) {
        steps_.note(event);
        if (stopping_) {
            actions.add<Release>(event.gradient);
            cancelled_ = true;
            return false;
        }
        ++books_.gradients;
        ++sends_under_way_;
        steps_.tell(now, next_id(), actions);
        return true;
    }
    void take(const Cancelled& event) {
        steps_.note(event);
        cancelled_ = true;
    }
    void take_step(BufferId gradient, Actions& actions) {
        steps_.step(std::exchange(weights_, no_buffer), gradient, next_id(), actions);
    }
    /// A message of its own has been taken.
    void count(const Taken& event) {
        --sends_under_way_;
        steps_.on(event);
    }
    void say_bye(Actions& actions) {
        bye_ = next_id();
        ++sends_under_way_;
        steps_.say_bye(bye_, cancelled_, actions);
    }
    void finish(Actions& actions) {
        let_go(weights_, actions);
        close(actions);
    }
    /// The run breaks off; begun: a gradient is.
    void abandon(bool begun, Actions& actions) {
        steps_.leave_over(begun || cancelled_, actions);
        close(actions);
    }
    /// With all that it has; begun: also a gradient.
    void lose(bool begun, Actions& actions) {
        steps_.crash(begun || cancelled_, actions);
        let_go(weights_, actions);
        bye_ = 0;
        sends_under_way_ = 0;
        stopping_ = cancelled_ = false;
    }
    ActionId next_id() { return ++last_id_; }

    bool has_data_;  ///< a part of the data is its
    LocalSteps steps_;
    BufferId weights_ = no_buffer;  ///< its own; lent while they change
    bool stopping_ = false, cancelled_ = false;
    ActionId bye_ = 0;
    std::int64_t sends_under_way_ = 0;
    Time since_ns_ = 0;  ///< whose time is booked up to here
    WorkerRow books_;

private:
    void close(Actions& actions) {
        actions.workers.push_back(books_);
        actions.add<Finish>();
    }

    ActionId last_id_ = 0;
    Time seen_ns_ = 0;
};

}  // namespace rubato
