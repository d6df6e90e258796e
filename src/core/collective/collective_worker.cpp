#include "core/collective/collective_worker.hpp"

#include "core/learning_rate.hpp"
#include "core/let_go.hpp"
#include "core/worker_books.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

CollectiveWorker::CollectiveWorker(const CollectiveConfig& config, const WorkerState& its, std::int64_t samples)
    : config_(config),
      version_(its.version),
      iteration_(its.version),
      gradients_(its.begun),
      applied_samples_(samples),
      delay_(config.spec.adaptive ? DelayChoice(config.spec.max_delay, config.spec.adapt_every)
                                  : DelayChoice(config.spec.mode == CollectiveMode::delayed ? config.spec.delay : 0)),
      saving_(config.checkpoint),
      handed_over_(its.version),
      kept_(its.version),
      holds_(config.pauses),
      last_(config.last),
      books_(its.books) {
    books_.worker = config.worker;
    evaluation_due();  // those up to here are the monitor's alone
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
    saving_.start({now, version_, epoch()});
    if (config_.buckets.size() == 1) return begin_iteration(now, actions);
    // Buckets are applied one after the other in the same place, which has to be its own.
    phase_ = Phase::beginning;
    Mix& copy = actions.add<Mix>();
    copy.id = work_ = next_id();
    copy.add(weights_, 1);
}

double CollectiveWorker::rate() const {
    return scheduled_rate(config_.optimizer, epoch());
}

void CollectiveWorker::begin_iteration(Time now, Actions& actions) {
    book(now);
    phase_ = Phase::resting;
    if (!takes_part()) {
        if (over_) iteration_ = last_;
        return try_leave(actions);
    }
    const bool ends = last_ >= 0 && iteration_ >= last_;
    if ((ends || holds_) && !flights_.empty()) return drain(now, actions);
    if (ends) {
        const bool saves = config_.checkpoint.any() && kept_ < version_;
        if (config_.hands_over && (handed_over_ < version_ || saves)) return hand_over(now, saves, actions);
        return try_leave(actions);
    }
    if (holds_ && onward_ < version_) {
        phase_ = Phase::holding;
        return;
    }
    holds_ = false;
    if (paused_) return;
    const std::int64_t iteration = iteration_++;
    told_ = {};
    iterates_ = true;
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
    const bool due = evaluation_due();
    holds_ = holds_ || (due && config_.pauses);
    const Progress at{now, version_, epoch()};
    const bool saves = config_.hands_over && saving_.due(at);
    if (saves) saving_.start(at);
    const bool held = holds_ && flights_.empty();
    const bool hands_over = saves || (config_.hands_over && (config_.pauses ? held : due));
    if (config_.worker == 0) tell(Made{version_, now, with, saves, held}, actions);
    if (hands_over) return hand_over(now, saves, actions);
    apply(now, actions);
}

bool CollectiveWorker::evaluation_due() {
    bool due = false;
    if (config_.evaluate_every_epochs)
        for (; next_evaluation_ <= epoch(); next_evaluation_ += *config_.evaluate_every_epochs) due = true;
    return due;
}

void CollectiveWorker::drain(Time now, Actions& actions) {
    to_apply_ = flights_.size();
    phase_ = Phase::waiting;
    apply(now, actions);
}

// A copy: steps go on meanwhile, in the place of what they are taken from. It is also what ends after the state of the
// optimizer is kept.
void CollectiveWorker::hand_over(Time now, bool saves, Actions& actions) {
    book(now);
    phase_ = Phase::copying;
    if (saves) {
        kept_ = version_;
        actions.add<KeepState>(version_);
    }
    sends_copy_ = std::exchange(handed_over_, version_) < version_;
    Mix& mix = actions.add<Mix>();
    mix.id = work_ = next_id();
    mix.add(weights_, 1);
}

void CollectiveWorker::end_iteration(Time now, Actions& actions) {
    book(now);
    if (std::exchange(iterates_, false)) {  // not while it drains
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
        if (phase_ == Phase::resting || phase_ == Phase::holding) begin_iteration(now, actions);
    } else if (const auto* onward = std::get_if<Onward>(&event.message)) {
        onward_ = std::max(onward_, onward->version);
        if (phase_ == Phase::holding) begin_iteration(now, actions);
    } else {
        throw std::logic_error("a worker without a server was sent a message that is not for one");
    }
}

template <class Other>
void CollectiveWorker::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a worker without a server is not told of");
}

}  // namespace rubato
