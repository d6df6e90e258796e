// The sums of a worker without a server: how they begin and go on beside its computation.
#include "core/collective/collective_worker.hpp"

#include "core/let_go.hpp"

#include <algorithm>
#include <stdexcept>

namespace rubato {

// One bucket after the other, in the order of the backward pass, which is the same for all.
void CollectiveWorker::reduce(Time now, Actions& actions) {
    if (!communicates()) return;
    Flight& flight = flights_.back();
    if (!layer_wise() && !started_) return;
    for (Part& part : flight.parts) {
        if (!part.there) break;
        if (!part.reduce.begun()) {
            part.times.reduce_begin_ns = now;
            const bool decides = delay_.decides_in(flight.iteration);
            part.reduce.begin(flight.gradient, flight.weight, decides ? delay_.propose() : 0);
            for (const Delivered& event : early_)
                if (const Chunk& chunk = std::get<Chunk>(event.message); chunk.number == part.reduce.number())
                    part.reduce.come(event.from - 1, event.payload, chunk);
            std::erase_if(early_, [&](const Delivered& event) {
                return std::get<Chunk>(event.message).number == part.reduce.number();
            });
        }
        sends_under_way_ += part.reduce.go_on([this] { return next_id(); }, actions);
        if (part.reduce.ready() && part.times.reduce_end_ns == 0) part.times.reduce_end_ns = now;
        if (!part.reduce.over()) break;
    }
}

void CollectiveWorker::go_on(Time now, Actions& actions) {
    for (Flight& flight : flights_) {
        const bool last = &flight == &flights_.back();
        if (last) {
            reduce(now, actions);
            continue;
        }
        for (Part& part : flight.parts) {
            sends_under_way_ += part.reduce.go_on([this] { return next_id(); }, actions);
            if (part.reduce.ready() && part.times.reduce_end_ns == 0) part.times.reduce_end_ns = now;
        }
    }
    for (Allreduce& reduce : closing_) sends_under_way_ += reduce.go_on([this] { return next_id(); }, actions);
    if (phase_ == Phase::waiting) apply(now, actions);
    if (phase_ == Phase::resting) try_leave(actions);
}

template <class Completion>
Allreduce* CollectiveWorker::reduce_of(const Completion& event) {
    for (Flight& flight : flights_)
        for (Part& part : flight.parts)
            if (part.reduce.is_of(event)) return &part.reduce;
    for (Allreduce& reduce : closing_)
        if (reduce.is_of(event)) return &reduce;
    return nullptr;
}

void CollectiveWorker::on(Time now, const Folded& event, Actions& actions) {
    if (phase_ == Phase::zeroing && event.id == work_) return take_whole(now, event.accumulator, actions);
    Allreduce* const reduce = reduce_of(event);
    if (reduce == nullptr) throw std::logic_error("a sum that the worker did not ask for");
    reduce->on(event, actions);
    go_on(now, actions);
}

void CollectiveWorker::on(Time now, const Placed& event, Actions& actions) {
    Allreduce* const reduce = reduce_of(event);
    if (reduce == nullptr) throw std::logic_error("a copy that the worker did not ask for");
    reduce->on(event, actions);
    go_on(now, actions);
}

void CollectiveWorker::on(Time now, const Summed& event, Actions& actions) {
    Allreduce* const reduce = reduce_of(event);
    if (reduce == nullptr) throw std::logic_error("a sum that the worker did not ask for");
    reduce->on(event, actions);
    go_on(now, actions);
}

void CollectiveWorker::on(Time now, const Mixed& event, Actions& actions) {
    if (Allreduce* const reduce = reduce_of(event)) {
        reduce->on(event, actions);
        return go_on(now, actions);
    }
    if (phase_ == Phase::beginning && event.id == work_) {
        let_go(weights_, actions);
        weights_ = event.out;
        return begin_iteration(now, actions);
    }
    if (phase_ != Phase::copying || event.id != work_) throw std::logic_error("a sum that the worker did not ask for");
    book(now);
    phase_ = Phase::waiting;
    if (sends_copy_) {
        ++sends_under_way_;
        actions.add<Send>(next_id(), 0, Channel::weights, Message(Model{handed_over_, 0, 0, 0}),
                          Slice{event.out, 0, config_.parameters});
    }
    actions.add<Release>(event.out);
    apply(now, actions);
}

void CollectiveWorker::on(Time now, const Taken& event, Actions& actions) {
    --sends_under_way_;
    std::erase_if(told_of_, [&](const auto& it) { return it.first == event.id; });
    if (event.id == bye_) {
        book(now);
        phase_ = Phase::finished;
        actions.workers.push_back(books_);
        let_go(weights_, actions);
        actions.add<Finish>();
        return;
    }
    if (Allreduce* const reduce = reduce_of(event)) {
        reduce->on(event);
        std::erase_if(closing_, [](const Allreduce& it) { return it.sent_all(); });
    }
    go_on(now, actions);
}

}  // namespace rubato
