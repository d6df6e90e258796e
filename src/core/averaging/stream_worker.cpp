#include "core/averaging/stream_worker.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace rubato {

StreamWorker::StreamWorker(const StreamWorkerConfig& config, const WorkerState& state)
    : LocalWorker(config.worker, config.data, state),
      config_(config),
      taken_(state.begun),
      among_(config.worker, config.data.lambda),
      reduce_(among_.reduce(true)) {}

void StreamWorker::step(Time now, const Event& event, Actions& actions) {
    const bool busy = phase_ == Phase::computing || phase_ == Phase::stepping;
    book_hidden(now, busy && (share_ != 0 || !broadcast_.done()));
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void StreamWorker::on(Time now, const Start& event, Actions&) {
    start(now, event.weights);
}

void StreamWorker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* model = std::get_if<Model>(&event.message)) {
        on_model(now, event, *model, actions);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        on_share(now, event, *share, actions);
    } else if (const auto* change = std::get_if<Membership>(&event.message)) {
        on_membership(now, *change, actions);
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
    // The exchange before is over, and is to be so here, too.
    const bool busy = model.version > version_ && (share_ != 0 || reduce_.mixing());
    Slice payload = event.payload;
    if (given_up_ || among_.late(model.group)) return let_go(payload.buffer, actions);
    if (among_.early(model.group) || busy) return among_.hold(event);
    if (model.number < 0) return on_whole(now, event, model, actions);
    if (model.version <= version_) return let_go(payload.buffer, actions);  // from the lost one, and from the driver
    version_ = model.version;
    if (handed_on_ <= version_) let_go(kept_.buffer, actions);
    if (merged_ < 0 && weights_ != no_buffer) {  // the first word: all have that version already
        goes_on_from(model, since_ns_);
        handed_on_ = merged_;
    }
    sent_.push_back({model, event.payload, event.from, model.version <= merged_});
    go_on_passing(actions);
    drop(actions);
    if (!stopping_) return go_on_with(now, event, model, actions);
    if (phase_ == Phase::waiting || phase_ == Phase::resting) rest(now, actions);
}

void StreamWorker::go_on_with(Time now, const Delivered& event, const Model& model, Actions& actions) {
    if (phase_ != Phase::waiting || weights_ == no_buffer) return;
    asked_ns_ = since_ns_;
    book_wait(now, event.started_ns, model.ready_ns);
    at_boundary(now, actions);
}

void StreamWorker::on_share(Time now, const Delivered& event, const Share& share, Actions& actions) {
    if (given_up_ || among_.late(share.group)) {
        Slice mean = event.payload;
        return let_go(mean.buffer, actions);
    }
    if (among_.outside() || share.group > reduce_.group()) return among_.hold(event);
    reduce_.come(event.from - 1, {event.payload, share}, actions);
    go_on_reducing(now, actions);
    try_leave(actions);
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
        among_.members().pass_on(config_.worker + 1, next.from, next.payload, next.payload.count, {}, next.model.group,
                                 broadcast_);
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
    if (hands_on()) {
        if (share_ != 0 || reduce_.begun() || renews_) {
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
    const Range& range = part(merged_);
    Mix& own = mix(Phase::merging, range, now, actions);
    own.work = Mix::Work::copy;
    own.add(next.payload.buffer, 1 - config_.keep);
    if (config_.keep > 0) own.add(weights_, config_.keep);
    own.out = std::exchange(weights_, no_buffer);
}

void StreamWorker::goes_on_from(const Model& model, Time asked_ns) {
    merged_ = model.version;
    steps_.begin(merged_, std::numeric_limits<std::int32_t>::max(), model.learning_rate, asked_ns);
}

void StreamWorker::contribute(Time now, BufferId copy, Actions& actions) {
    const Range& range = part(handed_on_);
    const double weight = copy != no_buffer && has_data_ ? config_.every : 0;
    let_go(kept_.buffer, actions);  // that of the one before has made its version
    kept_ = {};
    if (copy != no_buffer) kept_ = {copy, range.first, range.count};
    contributed_ = {handed_on_++, 1, weight, now};
    reduce_.begin({kept_, contributed_}, true);
    go_on_reducing(now, actions);
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
        if (given_up_) return give_up(actions);
        try_renew(now, actions);
        go_on_reducing(now, actions);
        take_held(now, actions);
        return try_leave(actions);
    }
    if (mixing_ == 0 || event.id != mixing_) throw std::logic_error("a sum that the worker did not ask for");
    mixing_ = 0;
    if (phase_ == Phase::copying) {
        if (given_up_)
            actions.add<Release>(event.out);
        else
            contribute(now, event.out, actions);
        return at_boundary(now, actions);
    }
    weights_ = event.out;
    if (!stopping_) ++books_.pulls;
    Sent& it = *next_to_merge();
    it.merged = true;
    goes_on_from(it.model, asked_ns_);
    drop(actions);
    at_boundary(now, actions);
}

void StreamWorker::go_on_reducing(Time now, Actions& actions) {
    if (renews_) return;
    reduce_.go_on([this] { return next_id(); }, actions);
    if (!reduce_.done()) return;
    const bool owns = reduce_.owns();
    const TreeReduce::Sum sum = reduce_.take();
    sharing_ = owns ? sum.mean.buffer : no_buffer;
    share_ = send(reduce_.parent(), Channel::gradient, sum.said, sum.mean, actions);
    if (reduce_.group() == among_.members().number()) return;
    // The next one is among others, some of whom may have told of theirs.
    reduce_ = among_.reduce(true);
    take_held(now, actions);
}

void StreamWorker::on(Time now, const GradientReady& event, Actions& actions) {
    if (!take(now, event, actions)) return rest(now, actions);
    book(now);
    phase_ = Phase::stepping;
    take_step(event.gradient, actions);
}

void StreamWorker::on(Time now, const Cancelled& event, Actions& actions) {
    take(event);
    rest(now, actions);
}

void StreamWorker::on(Time now, const Applied& event, Actions& actions) {
    weights_ = steps_.on(event, actions);
    ++taken_;
    at_boundary(now, actions);
}

void StreamWorker::on(Time now, const Taken& event, Actions& actions) {
    count(event);
    if (event.id == bye_) {
        phase_ = Phase::finished;
        let_go(kept_.buffer, actions);
        reduce_.end(actions);
        among_.drop_held(actions);
        return finish(actions);
    }
    if (broadcast_.is_of(event)) {
        broadcast_.on(event);
        if (given_up_) return give_up(actions);
        if (broadcast_.done()) ++passed_;
        go_on_passing(actions);
        drop(actions);
    } else if (event.id == share_) {
        share_ = 0;
        let_go(sharing_, actions);
        if (given_up_) return give_up(actions);
        try_renew(now, actions);
        take_held(now, actions);
        if (phase_ == Phase::held_up) return at_boundary(now, actions);
        if (stopping_ && phase_ == Phase::resting) return rest(now, actions);
    }
    try_leave(actions);
}

// The exchange that others may have begun is gone through to its end, without what it would have had from this worker.
void StreamWorker::rest(Time now, Actions& actions) {
    book(now);
    phase_ = Phase::resting;
    if (given_up_) return give_up(actions);
    if (merged_ >= 0 && handed_on_ == stop_version_ && share_ == 0 && !reduce_.begun() && !renews_)
        contribute(now, no_buffer, actions);
    drop(actions);
    try_leave(actions);
}

void StreamWorker::try_leave(Actions& actions) {
    if (!stopping_ || phase_ != Phase::resting || sends_under_way_ > 0 || bye_ != 0) return;
    const bool others_wait = version_ < stop_version_ || handed_on_ <= stop_version_ || reduce_.begun() || renews_ ||
                             passed_ < sent_.size() || !broadcast_.done();
    if (!others_wait || given_up_) say_bye(actions);
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
        case Phase::down:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

WorkerRow StreamWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

void StreamWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    abandon(phase_ == Phase::computing, actions);
    phase_ = Phase::finished;
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
        case Phase::down: return "is down";
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
