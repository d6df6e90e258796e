#include "core/averaging/gossip_worker.hpp"

#include "core/averaging/gossip_plan.hpp"
#include "core/learning_rate.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace rubato {

// All the weight is with those who have a part of the data: others would keep what they are handed for themselves.
GossipWorker::GossipWorker(const GossipWorkerConfig& config, const WorkerState& state)
    : LocalWorker(config.worker, config.data, state),
      config_(config),
      among_(config.worker, config.data.lambda),
      workers_(peers()),
      taken_(state.begun),
      hand_overs_(state.begun / config.tau),
      version_(state.version),
      reduce_(among_.reduce(true)) {
    sharers_ = static_cast<double>(workers_.size());
    if (has_data_) weight_ = 1 / sharers_;
    for (std::int64_t k = 0; k < state.begun; ++k) samples_ += own_batch(config.data, config.worker, k).count;
}

void GossipWorker::step(Time now, const Event& event, Actions& actions) {
    const bool busy = phase_ == Phase::computing || phase_ == Phase::stepping;
    book_hidden(now, busy && (share_ != 0 || hand_over_ != 0));
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void GossipWorker::on(Time now, const Start& event, Actions&) {
    start(now, event.weights);
}

void GossipWorker::on(Time now, const Delivered& event, Actions& actions) {
    if (const auto* gossip = std::get_if<Gossip>(&event.message)) {
        on_gossip(now, event, *gossip, actions);
    } else if (const auto* exchange = std::get_if<Exchange>(&event.message)) {
        if (exchange->shard < 0) {
            book(now);
            phase_ = Phase::resting;
        } else {
            ask(now, exchange->number);
        }
        if (phase_ == Phase::resting) at_boundary(now, actions);
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        on_share(now, event, *share, actions);
    } else if (const auto* model = std::get_if<Model>(&event.message)) {
        on_model(now, event, *model, actions);
    } else if (const auto* change = std::get_if<Membership>(&event.message)) {
        on_membership(now, *change, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        on_stop(now, *stop, actions);
    } else {
        throw std::logic_error("a worker of gossip was sent a message that is not for one");
    }
}

// Whoever has not heard that it had crashed may hand it a model, which was for the one of before.
void GossipWorker::on_gossip(Time now, const Delivered& event, const Gossip& gossip, Actions& actions) {
    Slice model = event.payload;
    if (among_.late(gossip.group)) return let_go(model.buffer, actions);
    if (among_.outside()) return among_.hold(event);
    handed_.push_back({model, gossip.weight});
    came_ += gossip.number >= 0;
    if (phase_ == Phase::resting) at_boundary(now, actions);
}

void GossipWorker::on_share(Time now, const Delivered& event, const Share& share, Actions& actions) {
    if (among_.late(share.group)) {
        Slice mean = event.payload;
        return let_go(mean.buffer, actions);
    }
    if (among_.outside() || share.group > reduce_.group()) return among_.hold(event);
    reduce_.come(event.from - 1, {event.payload, share}, actions);
    go_on_reducing(now, actions);
}

// The first one ends its steps, the second one asks for the mean at the end, the third one ends the run.
void GossipWorker::on_stop(Time now, const Stop& stop, Actions& actions) {
    book(now);
    if (stop.replies == no_more_steps) {
        stopping_ = true;
        if (phase_ == Phase::computing) steps_.cancel(actions);
        if (phase_ == Phase::waiting) phase_ = Phase::resting;
    } else if (stop.replies == leave_run) {
        left_ = true;
    } else {
        last_ = true;
        expected_ = stop.replies;
        ask(now, stop.version);
    }
    if (phase_ == Phase::resting) at_boundary(now, actions);
}

void GossipWorker::ask(Time now, std::int64_t number) {
    mean_ = number;
    said_.reset();
    exchange_ = Exchanged{};
    exchange_->asked_ns = now;
}

void GossipWorker::at_boundary(Time now, Actions& actions) {
    book(now);
    if (weights_ == no_buffer) return rest(actions);  // it is back, and has been sent none
    if (!handed_.empty()) {
        // Weights that are too small for a number are no weights, and then the two count alike.
        const double all = weight_ + handed_.front().weight;
        const double part = all > 0 ? handed_.front().weight / all : 0.5;
        Mix& mean = mix(Phase::merging, now, actions);
        mean.add(weights_, 1 - part);
        mean.add(handed_.front().model.buffer, part);
        mean.out = std::exchange(weights_, no_buffer);
        return;
    }
    if (exchange_ && share_ == 0 && !reduce_.begun() && !renews_ && (!last_ || came_ >= expected_)) {
        exchange_->begin_ns = now;
        Mix& copy = mix(Phase::copying, now, actions);
        copy.work = Mix::Work::copy;
        copy.add(weights_, 1);
        return;
    }
    if (stopping_ || !has_data_ || waits_) return rest(actions);
    if (since_handed_over_ >= config_.tau && hand_over_ == 0 && workers_.size() > 1) hand_over(actions);
    begin_step(now, actions);
}

// The message holds the model as it is; a step makes another one.
void GossipWorker::hand_over(Actions& actions) {
    const WorkerId to = gossip_peer(config_.seed, config_.worker, hand_overs_, workers_);
    weight_ /= 2;
    since_handed_over_ = 0;
    handing_ = {to, hand_overs_++, weight_, among_.members().number()};
    hand_over_ = send(to + 1, Channel::gradient, handing_, {weights_, 0, config_.parameters}, actions);
}

void GossipWorker::hand_in(Time now, BufferId copy, Actions& actions) {
    exchange_->steps = std::exchange(since_handed_in_, 0);
    exchange_->end_ns = now;
    exchange_->group = reduce_.group();
    said_ = std::exchange(exchange_, {});
    send(0, Channel::control, *said_, {}, actions);
    reduce_.begin({{copy, 0, config_.parameters}, {version_++, 1, weight_, now}}, false);
    go_on_reducing(now, actions);
}

// Nobody tells a worker how far the run has come: it takes all others to be as fast as itself.
double GossipWorker::rate() const {
    const double run = static_cast<double>(samples_) * sharers_;
    return scheduled_rate(config_.optimizer, run / static_cast<double>(config_.data.samples));
}

void GossipWorker::begin_step(Time now, Actions& actions) {
    phase_ = Phase::computing;
    steps_.begin(version_, std::numeric_limits<std::int32_t>::max(), rate(), now);
    steps_.compute(now, weights_, next_id(), actions);
}

void GossipWorker::on(Time now, const GradientReady& event, Actions& actions) {
    if (!take(now, event, actions)) return at_boundary(now, actions);
    book(now);
    phase_ = Phase::stepping;
    take_step(event.gradient, actions);
}

void GossipWorker::on(Time now, const Cancelled& event, Actions& actions) {
    take(event);
    at_boundary(now, actions);
}

void GossipWorker::on(Time now, const Applied& event, Actions& actions) {
    weights_ = steps_.on(event, actions);
    ++taken_;
    ++since_handed_over_;
    ++since_handed_in_;
    samples_ += steps_.record().batch.count;
    at_boundary(now, actions);
}

Mix& GossipWorker::mix(Phase phase, Time now, Actions& actions) {
    book(now);
    phase_ = phase;
    Mix& it = actions.add<Mix>();
    it.id = mixing_ = next_id();
    return it;
}

void GossipWorker::on(Time now, const Mixed& event, Actions& actions) {
    if (reduce_.is_of(event)) {
        reduce_.on(event, actions);
        try_renew(now, actions);
        return go_on_reducing(now, actions);
    }
    if (mixing_ == 0 || event.id != mixing_) throw std::logic_error("a mean that the worker did not ask for");
    mixing_ = 0;
    if (phase_ == Phase::merging) {
        weights_ = event.out;
        weight_ += handed_.front().weight;
        let_go(handed_.front().model.buffer, actions);
        handed_.pop_front();
        waits_ = false;
        if (!stopping_) ++books_.pulls;
    } else {
        hand_in(now, event.out, actions);
    }
    at_boundary(now, actions);
}

void GossipWorker::go_on_reducing(Time now, Actions& actions) {
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

void GossipWorker::on(Time now, const Taken& event, Actions& actions) {
    count(event);
    if (event.id == hand_over_) {
        hand_over_ = 0;
        send(0, Channel::control, handing_, {}, actions);
    }
    if (event.id == bye_) {
        said_bye_ = true;
        cancelled_ = false;  // that has been told of
    }
    if (event.id == share_) {
        share_ = 0;
        let_go(sharing_, actions);
        try_renew(now, actions);
        if (phase_ == Phase::resting && exchange_) return at_boundary(now, actions);
    }
    try_leave(actions);
}

void GossipWorker::rest(Actions& actions) {
    phase_ = Phase::resting;
    try_leave(actions);
}

// It says that it has come to rest once all it has sent is there, and leaves once nobody asks for a mean any more.
void GossipWorker::try_leave(Actions& actions) {
    if (!stopping_ || phase_ != Phase::resting || sends_under_way_ > 0) return;
    if (bye_ == 0) return say_bye(actions);
    if (!left_ || !said_bye_) return;
    phase_ = Phase::finished;
    reduce_.end(actions);
    for (Handed& it : handed_) let_go(it.model.buffer, actions);
    handed_.clear();
    among_.drop_held(actions);
    finish(actions);
}

Time& GossipWorker::account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::computing:
        case Phase::stepping: return books.compute_ns;
        case Phase::copying: return books.push_queued_ns;
        case Phase::merging: return books.pull_moving_ns;
        case Phase::waiting:
        case Phase::resting:
        case Phase::down:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

WorkerRow GossipWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

void GossipWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    abandon(phase_ == Phase::computing, actions);
    phase_ = Phase::finished;
}

template <class Other>
void GossipWorker::on(Time, const Other&, Actions&) {
    throw std::logic_error("an event that a worker of gossip is not told of");
}

std::string GossipWorker::waiting() const {
    switch (phase_) {
        case Phase::waiting: return "waits for the monitor's first word";
        case Phase::merging: return "takes a model that it was handed";
        case Phase::copying: return "copies its model for the mean of all";
        case Phase::computing: return "computes gradient " + std::to_string(steps_.record().worker_seq);
        case Phase::stepping: return "takes a step of its own";
        case Phase::down: return "is down";
        case Phase::finished: return "";
        case Phase::resting: break;
    }
    if (exchange_ && came_ < expected_)
        return "waits for " + std::to_string(expected_ - came_) + " models that others have handed it";
    if (reduce_.begun() && reduce_.waits_for() >= 0)
        return "waits for what worker " + std::to_string(reduce_.waits_for()) + " has";
    if (waits_ && !stopping_) return "waits until somebody hands it a model";
    if (sends_under_way_ > 0) return "waits until others take what it has sent";
    return "waits for the monitor";
}

std::string GossipWorker::describe() const {
    return "worker " + std::to_string(config_.worker) + ", last in mean " + std::to_string(version_) + ": " +
           std::to_string(begun()) + " gradients begun, " + std::to_string(taken_) + " steps taken, " +
           std::to_string(hand_overs_) + " models handed on; " + (finished() ? "finished" : waiting());
}

}  // namespace rubato
