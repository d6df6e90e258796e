#include "core/averaging/phase_worker.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace rubato {

PhaseWorker::PhaseWorker(const PhaseWorkerConfig& config, const WorkerState& state)
    : LocalWorker(config.worker, config.data, state),
      config_(config),
      tau_(config.parts.size(), 0),
      pulled_(config.parts.size(), 0),
      taken_(state.begun),
      version_(state.version),
      among_(config.worker, config.data.lambda),
      passing_(config.worker + 1, config.spread, true),
      reduce_(among_.reduce(true)) {}

void PhaseWorker::step(Time now, const Event& event, Actions& actions) {
    const bool busy = phase_ == Phase::computing || phase_ == Phase::stepping;
    book_hidden(now, busy && (share_ != 0 || passing_.busy()));
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void PhaseWorker::on(Time now, const Start& event, Actions&) {
    start(now, event.weights);
}

void PhaseWorker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* exchange = std::get_if<Exchange>(&event.message)) {
        on_exchange(now, *exchange, actions);
    } else if (const auto* model = std::get_if<Model>(&event.message)) {
        on_model(now, event, *model, actions);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        if (among_.late(share->group)) {
            Slice mean = event.payload;
            return let_go(mean.buffer, actions);
        }
        if (among_.outside() || (share->group > reduce_.group() && !given_up_)) return among_.hold(event);
        reduce_.come(event.from - 1, {event.payload, *share}, actions);
        go_on_reducing(now, actions);
        try_leave(actions);
    } else if (const auto* change = std::get_if<Membership>(&event.message)) {
        on_membership(now, *change, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        book(now);
        stopping_ = true;
        broadcasts_expected_ = stop->replies;
        exchanges_expected_ = stop->version;
        if (phase_ == Phase::computing) steps_.cancel(actions);
        if (phase_ == Phase::waiting || phase_ == Phase::resting) rest(now, actions);
    } else {
        throw std::logic_error("a worker that averages was sent a message that is not for one");
    }
}

void PhaseWorker::on_exchange(Time now, const Exchange& exchange, Actions& actions) {
    rate_ = exchange.learning_rate;
    if (exchange.shard < 0) {
        return begin(now, actions);
    }
    ++exchanges_;
    exchange_ = exchange;
    exchanged_ = {};
    exchanged_.shard = exchange.shard;
    exchanged_.asked_ns = now;
    if (phase_ == Phase::resting) at_boundary(now, actions);
}

void PhaseWorker::begin(Time now, Actions& actions) {
    if (stopping_) return rest(now, actions);
    if (!pulls()) return at_boundary(now, actions);
    mix(Phase::preparing, now, actions).add(weights_, 1);
}

void PhaseWorker::on_model(Time now, const Delivered& event, const Model& model, Actions& actions) {
    const bool busy = model.number > passing_.serial() && (passing_.sending() || passing_.gathering());
    Slice piece = event.payload;
    if (given_up_ || among_.late(model.group)) return let_go(piece.buffer, actions);
    if (among_.early(model.group) || busy) return among_.hold(event);
    if (model.number < 0) {  // it is back, and begins anew
        weights_ = event.payload.buffer;
        rate_ = model.learning_rate;
        version_ = model.version;
        return begin(now, actions);
    }
    const std::int64_t before = passing_.serial();
    if (!passing_.come(among_.members(), model.number, event, model, shard_of(piece), actions)) return;
    if (passing_.serial() > before) {
        ++broadcasts_;
        if (!stopping_) ++books_.pulls;
        passed_ = model;
    }
    go_on_passing(actions);
}

Slice PhaseWorker::shard_of(const Slice& piece) const {
    const auto part = std::find_if(config_.parts.begin(), config_.parts.end(), [&](const Range& it) {
        return it.first <= piece.first && piece.first < it.first + it.count;
    });
    if (part == config_.parts.end()) throw std::logic_error("a part of the joint model that is in no shard");
    return {no_buffer, part->first, part->count};
}

void PhaseWorker::go_on_passing(Actions& actions) {
    if (passing_.go_on([this] { return next_id(); }, actions)) ++sends_under_way_;
    if (!passing_.done()) return;
    sent_.push_back({passed_, passing_.take()});
    send(0, Channel::control, Received{passed_.version}, {}, actions);
    if (phase_ != Phase::resting || !stopping_) return;
    for (Sent& it : sent_) let_go(it.payload.buffer, actions);
    sent_.clear();
}

void PhaseWorker::at_boundary(Time now, Actions& actions) {
    if (stopping_) return rest(now, actions);
    book(now);
    try_renew(now, actions);
    if (!exchange_ || share_ != 0 || renews_) return begin_step(now, actions);
    exchanged_.begin_ns = now;
    const Range& part = config_.parts[static_cast<std::size_t>(exchange_->shard)];
    Mix& copy = mix(Phase::copying, now, actions);
    copy.work = Mix::Work::copy;
    copy.first = part.first;
    copy.count = part.count;
    copy.add(weights_, 1);
}

void PhaseWorker::contribute(Time now, BufferId copy, Actions& actions) {
    const auto shard = static_cast<std::size_t>(exchange_->shard);
    exchanged_.steps = std::exchange(tau_[shard], 0);
    exchanged_.pulls = std::exchange(pulled_[shard], 0);
    const double weight = config_.phases.by_steps ? static_cast<double>(exchanged_.steps) : 1;
    Slice mean;
    if (copy != no_buffer) mean = {copy, config_.parts[shard].first, config_.parts[shard].count};
    contributed_ = exchange_;
    exchanged_.group = reduce_.group();
    reduce_.begin({mean, {version_, 1, weight, now}}, false);
    go_on_reducing(now, actions);
}

// What has come of the joint model, as far as it is passed on already: the next exchange takes the rest.
void PhaseWorker::take_next(Time now, Actions& actions) {
    if (!sent_.empty() && pulls()) {
        const Slice& payload = sent_.front().payload;
        Mix& copy = mix(Phase::taking, now, actions);
        copy.work = Mix::Work::copy;
        copy.first = payload.first;
        copy.count = payload.count;
        copy.add(payload.buffer, 1);
        copy.out = std::exchange(joint_, no_buffer);
        return;
    }
    for (Sent& it : sent_) {
        version_ = std::max(version_, it.model.version);
        let_go(it.payload.buffer, actions);
    }
    sent_.clear();
    tell_exchanged(now, actions);
    at_boundary(now, actions);
}

void PhaseWorker::tell_exchanged(Time now, Actions& actions) {
    exchange_.reset();
    exchanged_.end_ns = now;
    send(0, Channel::control, exchanged_, {}, actions);
}

void PhaseWorker::begin_step(Time now, Actions& actions) {
    if (!has_data_) return rest(now, actions);
    steps_.begin(version_, std::numeric_limits<std::int32_t>::max(), rate_, now);
    if (alpha() == 0 || config_.phases.pull_gradients) return compute(now, actions);
    Mix& pull = mix(Phase::pulling, now, actions);
    pull.add(weights_, 1 - alpha());
    pull.add(joint_, alpha());
    pull.out = std::exchange(weights_, no_buffer);
}

void PhaseWorker::compute(Time now, Actions& actions) {
    book(now);
    phase_ = Phase::computing;
    steps_.compute(now, weights_, next_id(), actions);
}

void PhaseWorker::on(Time now, const GradientReady& event, Actions& actions) {
    if (!take(now, event, actions)) return rest(now, actions);
    book(now);
    gradient_ = event.gradient;
    if (alpha() == 0 || !config_.phases.pull_gradients) return begin_to_step(now, actions);
    Mix& draw = mix(Phase::drawing, now, actions);
    draw.add(gradient_, 1);
    draw.add(weights_, alpha());
    draw.add(joint_, -alpha());
    draw.out = std::exchange(gradient_, no_buffer);
}

void PhaseWorker::begin_to_step(Time now, Actions& actions) {
    book(now);
    phase_ = Phase::stepping;
    take_step(std::exchange(gradient_, no_buffer), actions);
}

void PhaseWorker::on(Time now, const Applied& event, Actions& actions) {
    weights_ = steps_.on(event, actions);
    const bool pulled = alpha() != 0;
    ++taken_;
    for (std::int64_t& tau : tau_) ++tau;
    for (std::int64_t& pulls : pulled_) pulls += pulled;
    at_boundary(now, actions);
}

void PhaseWorker::on(Time now, const Cancelled& event, Actions& actions) {
    take(event);
    rest(now, actions);
}

Mix& PhaseWorker::mix(Phase phase, Time now, Actions& actions) {
    book(now);
    phase_ = phase;
    Mix& it = actions.add<Mix>();
    it.id = mixing_ = next_id();
    return it;
}

void PhaseWorker::on(Time now, const Mixed& event, Actions& actions) {
    if (passing_.is_of(event)) {
        passing_.on(event, actions);
        if (given_up_) return give_up(now, actions);
        go_on_passing(actions);
        take_held(now, actions);
        return try_leave(actions);
    }
    if (reduce_.is_of(event)) {
        reduce_.on(event, actions);
        if (given_up_) return give_up(now, actions);
        try_renew(now, actions);
        go_on_reducing(now, actions);
        if (phase_ == Phase::resting && exchange_) at_boundary(now, actions);
        return;
    }
    if (mixing_ == 0 || event.id != mixing_) throw std::logic_error("a sum that the worker did not ask for");
    mixing_ = 0;
    if (given_up_ && phase_ == Phase::copying) {
        actions.add<Release>(event.out);
        return rest(now, actions);
    }
    switch (phase_) {
        case Phase::preparing: joint_ = event.out; return at_boundary(now, actions);
        case Phase::copying: contribute(now, event.out, actions); return take_next(now, actions);
        case Phase::taking:
            joint_ = event.out;
            version_ = std::max(version_, sent_.front().model.version);
            let_go(sent_.front().payload.buffer, actions);
            sent_.pop_front();
            return given_up_ ? rest(now, actions) : take_next(now, actions);
        case Phase::pulling: weights_ = event.out; return stopping_ ? rest(now, actions) : compute(now, actions);
        case Phase::drawing: gradient_ = event.out; return begin_to_step(now, actions);
        default: throw std::logic_error("a sum that belongs to nothing");
    }
}

void PhaseWorker::go_on_reducing(Time now, Actions& actions) {
    if (renews_) return;
    reduce_.go_on([this] { return next_id(); }, actions);
    if (!reduce_.done()) return;
    const TreeReduce::Sum sum = reduce_.take();
    sharing_ = sum.mean.buffer;
    share_ = send(reduce_.parent(), Channel::gradient, sum.said, sum.mean, actions);
    if (reduce_.group() == among_.members().number()) return;
    // The next one is among others, some of whom may have told of theirs.
    reduce_ = among_.reduce(true);
    take_held(now, actions);
}

void PhaseWorker::on(Time now, const Taken& event, Actions& actions) {
    count(event);
    if (event.id == bye_) {
        phase_ = Phase::finished;
        let_go(joint_, actions);
        reduce_.end(actions);
        among_.drop_held(actions);
        return finish(actions);
    }
    if (passing_.is_of(event)) {
        passing_.on(event, actions);
        if (given_up_) return give_up(now, actions);
        go_on_passing(actions);
        take_held(now, actions);
    } else if (event.id == share_) {
        share_ = 0;
        let_go(sharing_, actions);
        if (given_up_) return give_up(now, actions);
        try_renew(now, actions);
        if (phase_ == Phase::resting && exchange_) at_boundary(now, actions);
    }
    try_leave(actions);
}

void PhaseWorker::rest(Time now, Actions& actions) {
    book(now);
    phase_ = Phase::resting;
    if (!stopping_) return;
    let_go(gradient_, actions);
    if (given_up_) return give_up(now, actions);
    if (exchange_ && share_ == 0) {
        exchanged_.begin_ns = now;
        contribute(now, no_buffer, actions);
        tell_exchanged(now, actions);
    }
    for (Sent& it : sent_) let_go(it.payload.buffer, actions);
    sent_.clear();
    try_leave(actions);
}

void PhaseWorker::try_leave(Actions& actions) {
    if (!stopping_ || phase_ != Phase::resting || sends_under_way_ > 0 || bye_ != 0) return;
    const bool others_wait = exchanges_ < exchanges_expected_ || exchange_ || reduce_.begun() || renews_ ||
                             broadcasts_ < broadcasts_expected_ || passing_.busy();
    if (others_wait && !given_up_) return;
    say_bye(actions);
}

void PhaseWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    abandon(phase_ == Phase::computing, actions);
    phase_ = Phase::finished;
}

template <class Other>
void PhaseWorker::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a worker that averages is not told of");
}

}  // namespace rubato
