#include "core/collective/collective_worker.hpp"

#include "core/learning_rate.hpp"
#include "core/let_go.hpp"
#include "core/worker_books.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

CollectiveWorker::CollectiveWorker(const CollectiveConfig& config)
    : config_(config),
      delay_(config.spec.adaptive ? DelayChoice(config.spec.max_delay, config.spec.adapt_every)
                                  : DelayChoice(config.spec.mode == CollectiveMode::delayed ? config.spec.delay : 0)),
      last_(config.last) {
    books_.worker = config.worker;
    if (config.evaluate_every_epochs) next_evaluation_ = *config.evaluate_every_epochs;
}

void CollectiveWorker::step(Time now, const Event& event, Actions& actions) {
    const bool busy = phase_ == Phase::computing || phase_ == Phase::stepping;
    if (busy && communicating()) books_.hidden_ns += now - seen_ns_;
    seen_ns_ = now;
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void CollectiveWorker::on(Time now, const Start& event, Actions& actions) {
    weights_ = event.weights;
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    since_ns_ = now;
    if (config_.buckets.size() == 1) return begin_iteration(now, actions);
    // Buckets are applied one after the other in the same place, which has to be its own.
    phase_ = Phase::beginning;
    Mix& copy = actions.add<Mix>();
    copy.id = work_ = next_id();
    copy.add(weights_, 1);
}

double CollectiveWorker::rate() const {
    return scheduled_rate(config_.optimizer,
                          static_cast<double>(applied_samples_) / static_cast<double>(config_.data.samples));
}

void CollectiveWorker::begin_iteration(Time now, Actions& actions) {
    book(now);
    phase_ = Phase::resting;
    if (!takes_part()) {
        if (over_) iteration_ = last_;
        return try_leave(actions);
    }
    if (last_ >= 0 && iteration_ >= last_) {  // what is under way is drained
        to_apply_ = flights_.size();
        if (to_apply_ > 0) {
            phase_ = Phase::waiting;
            return apply(now, actions);
        }
        if (config_.hands_over && handed_over_ < version_) return hand_over(now, actions);
        return try_leave(actions);
    }
    if (paused_) return;
    const std::int64_t iteration = iteration_++;
    told_ = {};
    told_.iteration = iteration;
    told_.in_flight = static_cast<std::int32_t>(flights_.size());
    told_.delay = delay_.delay();
    told_.begin_ns = now;
    started_ = false;
    Flight& flight = flights_.emplace_back();
    flight.iteration = iteration;
    flight.samples = samples_of(config_.data, iteration);
    const Batch batch = batch_of(config_.data, config_.worker, iteration);
    flight.weight = communicates() ? static_cast<double>(batch.count) / static_cast<double>(flight.samples) : 1;
    const auto buckets = static_cast<std::int64_t>(config_.buckets.size());
    for (std::int64_t number = 0; number < buckets; ++number) {
        const Range& range = config_.buckets[static_cast<std::size_t>(number)].range;
        Part& part = flight.parts.emplace_back();
        part.times.iteration = iteration;
        part.times.bucket = static_cast<std::int32_t>(number);
        if (!communicates()) continue;
        const auto bytes = static_cast<std::int64_t>(static_cast<double>(range.count) * config_.bytes_of_one);
        part.reduce = Allreduce(algorithm_for(config_.spec, bytes), config_.worker, config_.data.lambda,
                                iteration * buckets + number, range, bytes > long_bytes,
                                static_cast<int>(iteration % sums_at_once(config_.spec)));
    }
    if (batch.count == 0) {  // it adds nothing to the sum of the others
        phase_ = Phase::zeroing;
        actions.add<Fold>(work_ = next_id(), no_buffer, weights_, 0.0);
        return;
    }
    record_ = Push{};
    record_.read_version = version_;
    record_.worker_seq = gradients_++;
    record_.batch = batch;
    record_.pull_ns = record_.begin_ns = now;
    phase_ = Phase::computing;
    actions.add<Compute>(compute_ = next_id(), weights_, batch, record_.worker_seq, layer_wise());
}

void CollectiveWorker::on(Time now, const LayerReady& event, Actions& actions) {
    Flight& flight = flights_.back();
    for (std::size_t i = 0; i < flight.parts.size(); ++i) {
        Part& part = flight.parts[i];
        if (part.there || config_.buckets[i].range.first < event.first) continue;
        part.there = true;
        part.times.gradient_begin_ns = event.begin_ns;
        part.times.gradient_end_ns = event.end_ns;
    }
    flight.gradient = event.gradient;
    reduce(now, actions);
}

void CollectiveWorker::on(Time now, const GradientReady& event, Actions& actions) {
    record_.begin_ns = event.begin_ns;
    record_.end_ns = event.end_ns;
    record_.push_ns = now;
    record_.loss = event.loss;
    ++books_.gradients;
    tell(Computed{flights_.back().iteration, record_}, actions);
    told_of_.emplace_back(last_id_, record_);
    for (Part& part : flights_.back().parts) {
        if (part.there) continue;
        part.times.gradient_begin_ns = event.begin_ns;
        part.times.gradient_end_ns = event.end_ns;
    }
    take_whole(now, event.gradient, actions);
}

// Of a delay k the oldest of k gradients in flight is waited for before the newest one is sent on its way, and applied
// after that: so no more than k are ever in flight.
void CollectiveWorker::take_whole(Time now, BufferId gradient, Actions& actions) {
    book(now);
    told_.computed_ns = now;
    Flight& flight = flights_.back();
    flight.gradient = gradient;
    for (Part& part : flight.parts) {
        if (part.times.gradient_end_ns == 0) part.times.gradient_begin_ns = part.times.gradient_end_ns = now;
        part.there = true;
    }
    const auto keep = static_cast<std::size_t>(delay_.delay());
    to_apply_ = flights_.size() > keep ? flights_.size() - keep : 0;
    phase_ = Phase::waiting;
    if (to_apply_ == 0 || to_apply_ == flights_.size()) {
        started_ = true;
        reduce(now, actions);
    }
    apply(now, actions);
}

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

int CollectiveWorker::next_part(const Flight& flight) const {
    const auto ready = [&](const Part& part) { return part.there && (!communicates() || part.reduce.ready()); };
    const auto& parts = flight.parts;
    if (config_.spec.order == ApplyOrder::wait_all &&
        !std::all_of(parts.begin(), parts.end(), [&](const Part& it) { return it.applied || ready(it); }))
        return -1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].applied) continue;
        if (ready(parts[i])) return static_cast<int>(i);
        if (config_.spec.order != ApplyOrder::completion) return -1;
    }
    return -1;
}

void CollectiveWorker::apply(Time now, Actions& actions) {
    if (to_apply_ > 0 && !started_) {  // all of them, before the newest one is on its way
        for (std::size_t i = 0; i < to_apply_; ++i)
            if (next_part(flights_[i]) < 0) return;
        started_ = true;
        reduce(now, actions);
    }
    if (to_apply_ == 0) return end_iteration(now, actions);
    Flight& flight = flights_.front();
    applying_ = next_part(flight);
    if (applying_ < 0) return;
    book(now);
    phase_ = Phase::stepping;
    Part& part = flight.parts[static_cast<std::size_t>(applying_)];
    part.times.apply_begin_ns = now;
    const BufferId sum = communicates() ? part.reduce.sum() : flight.gradient;
    const auto first_part = static_cast<std::int32_t>(actions.parts.size());
    const auto first_step = static_cast<std::int32_t>(actions.steps.size());
    actions.parts.push_back({sum, 1, version_, 0, -1});
    actions.steps.push_back({first_part, 1, rate(), -1});
    Update& update =
        actions.add<Update>(work_ = next_id(), std::exchange(weights_, no_buffer), version_, first_step, 1);
    if (flight.parts.size() == 1) return;
    update.first = config_.buckets[static_cast<std::size_t>(applying_)].range.first;
    update.count = config_.buckets[static_cast<std::size_t>(applying_)].range.count;
}

void CollectiveWorker::on(Time now, const Applied& event, Actions& actions) {
    if (phase_ != Phase::stepping || event.id != work_) throw std::logic_error("a step that the worker did not take");
    weights_ = event.weights;
    book(now);
    Flight& flight = flights_.front();
    Part& part = flight.parts[static_cast<std::size_t>(applying_)];
    part.applied = true;
    part.times.apply_end_ns = now;
    if (communicates()) part.reduce.give_up(actions);
    if (config_.traces_buckets) tell(part.times, actions);
    phase_ = Phase::waiting;
    if (std::all_of(flight.parts.begin(), flight.parts.end(), [](const Part& it) { return it.applied; }))
        applied_all(now, actions);
    else
        apply(now, actions);
}

void CollectiveWorker::applied_all(Time now, Actions& actions) {
    Flight& flight = flights_.front();
    const double with = rate();
    applied_samples_ += flight.samples;
    ++version_;
    if (delay_.decides_in(flight.iteration)) delay_.take(flight.parts.front().reduce.wish());
    let_go(flight.gradient, actions);
    for (Part& part : flight.parts)
        if (communicates() && !part.reduce.over()) closing_.push_back(std::move(part.reduce));
    flights_.pop_front();
    --to_apply_;
    if (config_.worker == 0) tell(Made{version_, now, with}, actions);
    const double epoch = static_cast<double>(applied_samples_) / static_cast<double>(config_.data.samples);
    bool due = false;
    if (config_.evaluate_every_epochs)
        for (; next_evaluation_ <= epoch; next_evaluation_ += *config_.evaluate_every_epochs) due = true;
    if (config_.hands_over && due) return hand_over(now, actions);
    apply(now, actions);
}

// A copy: steps go on meanwhile, in the place of what they are taken from.
void CollectiveWorker::hand_over(Time now, Actions& actions) {
    book(now);
    phase_ = Phase::copying;
    handed_over_ = version_;
    Mix& mix = actions.add<Mix>();
    mix.id = work_ = next_id();
    mix.add(weights_, 1);
}

void CollectiveWorker::end_iteration(Time now, Actions& actions) {
    book(now);
    if (told_.computed_ns > 0) {  // not while it drains
        told_.end_ns = now;
        told_.version = version_;
        // Not of one in which the delay has changed.
        if (told_.delay == delay_.delay()) delay_.note(now - told_.begin_ns, told_.waited_ns);
        tell(told_, actions);
        told_ = {};
    }
    begin_iteration(now, actions);
}

void CollectiveWorker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* chunk = std::get_if<Chunk>(&event.message)) {
        for (Flight& flight : flights_)
            for (Part& part : flight.parts)
                if (communicates() && part.reduce.number() == chunk->number && part.reduce.begun()) {
                    part.reduce.come(event.from - 1, event.payload, *chunk);
                    return go_on(now, actions);
                }
        early_.push_back(event);
    } else if (std::holds_alternative<Pause>(event.message)) {
        paused_ = true;
        tell(Pause{iteration_}, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        last_ = stop->version;
        paused_ = false;
        over_ = true;
        if (phase_ == Phase::resting) begin_iteration(now, actions);
    } else {
        throw std::logic_error("a worker without a server was sent a message that is not for one");
    }
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
    ++sends_under_way_;
    actions.add<Send>(next_id(), 0, Channel::weights, Message(Model{handed_over_, 0, 0, 0}),
                      Slice{event.out, 0, config_.parameters});
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

template <class Other>
void CollectiveWorker::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a worker without a server is not told of");
}

}  // namespace rubato
