#include "core/averaging/stream_worker.hpp"

#include "core/worker_books.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace rubato {

StreamWorker::StreamWorker(const StreamWorkerConfig& config, const WorkerState& state)
    : config_(config),
      has_data_(own_batch(config.data, config.worker, 0).count > 0),
      steps_(config.worker, config.data, state.begun),
      below_(Members(config.data.lambda).below(config.worker + 1, 0)),
      reduce_(Members(config.data.lambda).reduce(config.worker, true)) {
    taken_ = state.begun;
    books_ = state.books;
    books_.worker = config.worker;
}

void StreamWorker::step(Time now, const Event& event, Actions& actions) {
    const bool busy = phase_ == Phase::computing || phase_ == Phase::stepping;
    if (busy && !stopping_ && (share_ != 0 || !broadcast_.done())) books_.hidden_ns += now - seen_ns_;
    seen_ns_ = now;
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void StreamWorker::on(Time now, const Start& event, Actions&) {
    weights_ = event.weights;
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    since_ns_ = now;
}

void StreamWorker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* model = std::get_if<Model>(&event.message)) {
        on_model(now, event, *model, actions);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        reduce_.come(event.from - 1, {event.payload, *share}, actions);
        go_on_reducing(actions);
        try_leave(actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        book(now);
        stopping_ = true;
        stop_version_ = stop->version;
        if (phase_ == Phase::computing) steps_.cancel(actions);
        if (phase_ == Phase::waiting || phase_ == Phase::held_up || phase_ == Phase::resting) rest(now, actions);
    } else {
        throw std::logic_error("a worker that averages was sent a message that is not for one");
    }
}

void StreamWorker::on_model(Time now, const Delivered& event, const Model& model, Actions& actions) {
    version_ = model.version;
    sent_.push_back({model, event.payload});
    go_on_passing(actions);
    if (stopping_) {
        if (phase_ == Phase::waiting || phase_ == Phase::resting) rest(now, actions);
        return;
    }
    if (phase_ != Phase::waiting) return;
    // Held up by the slowest worker, moving; the rest is the way of the means and of the fragment to whom it came from.
    const Time wait = now - since_ns_;
    const Time moving = std::clamp<Time>(now - event.started_ns, 0, wait);
    const Time held = std::clamp<Time>(model.ready_ns - since_ns_, 0, wait - moving);
    books_.policy_wait_ns += held;
    books_.pull_moving_ns += moving;
    books_.pull_request_ns += wait - moving - held;
    asked_ns_ = std::exchange(since_ns_, now);
    at_boundary(now, actions);
}

std::deque<StreamWorker::Sent>::iterator StreamWorker::next_to_merge() {
    return std::find_if(sent_.begin(), sent_.end(), [](const Sent& it) { return !it.merged; });
}

void StreamWorker::drop(Actions& actions) {
    while (passed_ > 0 && (sent_.front().merged || phase_ == Phase::resting)) {
        let_go(sent_.front().payload.buffer, actions);
        sent_.pop_front();
        --passed_;
    }
}

// One fragment after the other.
void StreamWorker::go_on_passing(Actions& actions) {
    while (broadcast_.done() && passed_ < sent_.size()) {
        const Sent& next = sent_[passed_];
        if (next.payload.buffer == no_buffer) {  // the first word
            ++passed_;
            continue;
        }
        broadcast_.begin(next.model);
        for (const RoleId role : below_) broadcast_.add(role, next.payload);
        if (!broadcast_.done()) break;
        ++passed_;
    }
    if (broadcast_.go_on([this] { return next_id(); }, actions)) ++sends_under_way_;
}

bool StreamWorker::hands_on() const {
    if (!has_data_) return handed_on_ == merged_;
    return taken_ == config_.every * (handed_on_ + 1);
}

/// Whether the next step, or exchange, is to be made on a fragment that it has not merged.
bool StreamWorker::needs() const {
    if (!has_data_) return handed_on_ > merged_;
    return merged_ < handed_on_ && taken_ == config_.every * (merged_ + 1) + config_.overlap;
}

void StreamWorker::at_boundary(Time now, Actions& actions) {
    if (stopping_) return rest(now, actions);
    book(now);
    if (merged_ < 0) return merge(now, actions);
    if (hands_on()) {
        if (share_ != 0 || reduce_.begun()) {
            phase_ = Phase::held_up;
            return;
        }
        const Range& range = part(handed_on_);
        Mix& copy = mix(Phase::copying, range, now, actions);
        copy.work = Mix::Work::copy;
        copy.add(weights_, 1);
        return;
    }
    if (needs()) return merge(now, actions);
    phase_ = Phase::computing;
    steps_.compute(now, weights_, next_id(), actions);
}

void StreamWorker::merge(Time now, Actions& actions) {
    const auto found = next_to_merge();
    if (found == sent_.end()) {
        phase_ = Phase::waiting;
        return;
    }
    Sent& next = *found;
    if (phase_ != Phase::waiting) asked_ns_ = now;
    if (next.payload.buffer == no_buffer) {
        // The first word: all have that version already.
        merged_ = handed_on_ = next.model.version;
        next.merged = true;
        steps_.begin(merged_, std::numeric_limits<std::int32_t>::max(), next.model.learning_rate, asked_ns_);
        drop(actions);
        return at_boundary(now, actions);
    }
    const Range& range = part(merged_);
    Mix& own = mix(Phase::merging, range, now, actions);
    own.work = Mix::Work::copy;
    own.add(next.payload.buffer, 1 - config_.keep);
    if (config_.keep > 0) own.add(weights_, config_.keep);
    own.out = std::exchange(weights_, no_buffer);
}

void StreamWorker::contribute(Time now, BufferId copy, Actions& actions) {
    const Range& range = part(handed_on_);
    const double weight = copy != no_buffer && has_data_ ? config_.every : 0;
    Slice mean;
    if (copy != no_buffer) mean = {copy, range.first, range.count};
    reduce_.begin({mean, {handed_on_++, 1, weight, now}}, false);
    go_on_reducing(actions);
}

Mix& StreamWorker::mix(Phase phase, const Range& part, Time now, Actions& actions) {
    book(now);
    phase_ = phase;
    Mix& it = actions.add<Mix>();
    it.id = mixing_ = next_id();
    it.first = part.first;
    it.count = part.count;
    return it;
}

void StreamWorker::on(Time now, const Mixed& event, Actions& actions) {
    if (reduce_.is_of(event)) {
        reduce_.on(event, actions);
        go_on_reducing(actions);
        return try_leave(actions);
    }
    if (mixing_ == 0 || event.id != mixing_) throw std::logic_error("a sum that the worker did not ask for");
    mixing_ = 0;
    if (phase_ == Phase::copying) {
        contribute(now, event.out, actions);
        return at_boundary(now, actions);
    }
    weights_ = event.out;
    ++merged_;
    if (!stopping_) ++books_.pulls;
    Sent& it = *next_to_merge();
    it.merged = true;
    steps_.begin(merged_, std::numeric_limits<std::int32_t>::max(), it.model.learning_rate, asked_ns_);
    drop(actions);
    at_boundary(now, actions);
}

void StreamWorker::go_on_reducing(Actions& actions) {
    reduce_.go_on([this] { return next_id(); }, actions);
    if (!reduce_.done()) return;
    const TreeReduce::Sum sum = reduce_.take();
    sharing_ = sum.mean.buffer;
    share_ = next_id();
    ++sends_under_way_;
    actions.add<Send>(share_, reduce_.parent(), Channel::gradient, Message(sum.said), sum.mean);
}

void StreamWorker::on(Time now, const GradientReady& event, Actions& actions) {
    steps_.note(event);
    if (stopping_) {
        actions.add<Release>(event.gradient);
        cancelled_ = true;
        return rest(now, actions);
    }
    ++books_.gradients;
    ++sends_under_way_;
    steps_.tell(now, next_id(), actions);
    book(now);
    phase_ = Phase::stepping;
    steps_.step(std::exchange(weights_, no_buffer), event.gradient, next_id(), actions);
}

void StreamWorker::on(Time now, const Cancelled& event, Actions& actions) {
    steps_.note(event);
    cancelled_ = true;
    rest(now, actions);
}

void StreamWorker::on(Time now, const Applied& event, Actions& actions) {
    weights_ = steps_.on(event, actions);
    ++taken_;
    at_boundary(now, actions);
}

void StreamWorker::on(Time now, const Taken& event, Actions& actions) {
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
        if (broadcast_.done()) ++passed_;
        go_on_passing(actions);
        drop(actions);
    } else if (event.id == share_) {
        share_ = 0;
        let_go(sharing_, actions);
        if (phase_ == Phase::held_up) return at_boundary(now, actions);
        if (stopping_ && phase_ == Phase::resting) return rest(now, actions);
    }
    try_leave(actions);
}

// The exchange that others may have begun is gone through to its end, without what it would have had from this worker.
void StreamWorker::rest(Time now, Actions& actions) {
    book(now);
    phase_ = Phase::resting;
    if (handed_on_ == stop_version_ && share_ == 0 && !reduce_.begun()) contribute(now, no_buffer, actions);
    drop(actions);
    try_leave(actions);
}

void StreamWorker::try_leave(Actions& actions) {
    if (!stopping_ || phase_ != Phase::resting || version_ < stop_version_ || handed_on_ <= stop_version_ ||
        reduce_.begun() || passed_ < sent_.size() || !broadcast_.done() || sends_under_way_ > 0 || bye_ != 0)
        return;
    bye_ = next_id();
    ++sends_under_way_;
    steps_.say_bye(bye_, cancelled_, actions);
}

Time& StreamWorker::account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::computing:
        case Phase::stepping: return books.compute_ns;
        case Phase::held_up:
        case Phase::copying: return books.push_queued_ns;
        case Phase::merging: return books.pull_moving_ns;
        case Phase::waiting:
        case Phase::resting:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

// What is under way at the end no longer serves the run.
void StreamWorker::book(Time now) {
    if (!stopping_ && phase_ != Phase::finished) account(books_) += now - since_ns_;
    since_ns_ = now;
}

WorkerRow StreamWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

void StreamWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    steps_.leave_over(phase_ == Phase::computing || cancelled_, actions);
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    actions.add<Finish>();
}

template <class Other>
void StreamWorker::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a worker that averages is not told of");
}

std::string StreamWorker::waiting() const {
    switch (phase_) {
        case Phase::waiting:
            return merged_ < 0 ? "waits for the driver's first word"
                               : "waits for what exchange " + std::to_string(merged_) + " made of its fragment";
        case Phase::held_up: return "waits until its last fragment is taken";
        case Phase::copying: return "copies the fragment of exchange " + std::to_string(handed_on_);
        case Phase::merging: return "merges what exchange " + std::to_string(merged_) + " made of its fragment";
        case Phase::computing: return "computes gradient " + std::to_string(steps_.record().worker_seq);
        case Phase::stepping: return "takes a step of its own";
        case Phase::finished: return "";
        case Phase::resting: break;
    }
    if (bye_ != 0) return "waits until its last word is taken by the driver";
    if (reduce_.begun() && reduce_.waits_for() >= 0)
        return "waits for what worker " + std::to_string(reduce_.waits_for()) + " has";
    if (!broadcast_.done()) return "passes a fragment on to worker " + std::to_string(broadcast_.sends_to() - 1);
    return "waits for messages under way before it says its last word";
}

std::string StreamWorker::describe() const {
    return "worker " + std::to_string(config_.worker) + " at version " + std::to_string(std::max<Version>(0, merged_)) +
           ": " + std::to_string(begun()) + " gradients begun, " + std::to_string(taken_) + " steps taken, " +
           std::to_string(handed_on_) + " fragments handed on; " + (finished() ? "finished" : waiting());
}

}  // namespace rubato
