#include "core/averaging/gossip_worker.hpp"

#include "core/averaging/gossip_plan.hpp"
#include "core/learning_rate.hpp"
#include "core/worker_books.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace rubato {

// All the weight is with those who have a part of the data: others would keep what they are handed for themselves.
GossipWorker::GossipWorker(const GossipWorkerConfig& config, const WorkerState& state)
    : config_(config),
      steps_(config.worker, config.data, state.begun),
      reduce_(Members(config.data.lambda).reduce(config.worker, true)) {
    for (WorkerId worker = 0; worker < config.data.lambda; ++worker)
        if (own_batch(config.data, worker, 0).count > 0) workers_.push_back(worker);
    has_data_ = own_batch(config.data, config.worker, 0).count > 0;
    if (has_data_) weight_ = 1 / static_cast<double>(workers_.size());
    version_ = state.version;
    taken_ = state.begun;
    hand_overs_ = state.begun / config.tau;
    for (std::int64_t k = 0; k < state.begun; ++k) samples_ += own_batch(config.data, config.worker, k).count;
    books_ = state.books;
    books_.worker = config.worker;
}

void GossipWorker::step(Time now, const Event& event, Actions& actions) {
    const bool busy = phase_ == Phase::computing || phase_ == Phase::stepping;
    if (busy && !stopping_ && (share_ != 0 || hand_over_ != 0)) books_.hidden_ns += now - seen_ns_;
    seen_ns_ = now;
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

void GossipWorker::on(Time now, const Start& event, Actions&) {
    weights_ = event.weights;
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    since_ns_ = now;
}

void GossipWorker::on(Time now, const Delivered& event, Actions& actions) {
    bool wakes = false;
    if (const auto* gossip = std::get_if<Gossip>(&event.message)) {
        handed_.push_back({event.payload, gossip->weight});
        ++came_;
        wakes = true;
    } else if (const auto* exchange = std::get_if<Exchange>(&event.message)) {
        if (exchange->shard < 0) {
            book(now);
            phase_ = Phase::resting;
        } else {
            ask(now);
        }
        wakes = true;
    } else if (const auto* share = std::get_if<Share>(&event.message)) {
        reduce_.come(event.from - 1, {event.payload, *share}, actions);
        go_on_reducing(actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        return on_stop(now, *stop, actions);
    } else {
        throw std::logic_error("a worker of gossip was sent a message that is not for one");
    }
    if (wakes && phase_ == Phase::resting) at_boundary(now, actions);
}

// The first one ends its steps, the second one the run.
void GossipWorker::on_stop(Time now, const Stop& stop, Actions& actions) {
    book(now);
    if (stop.replies < 0) {
        stopping_ = true;
        if (phase_ == Phase::computing) steps_.cancel(actions);
    } else {
        last_ = true;
        expected_ = stop.replies;
        ask(now);
    }
    if (phase_ == Phase::resting) at_boundary(now, actions);
}

void GossipWorker::ask(Time now) {
    exchange_ = Exchanged{};
    exchange_->asked_ns = now;
}

void GossipWorker::at_boundary(Time now, Actions& actions) {
    book(now);
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
    if (exchange_ && share_ == 0 && !reduce_.begun() && (!last_ || came_ >= expected_)) {
        exchange_->begin_ns = now;
        Mix& copy = mix(Phase::copying, now, actions);
        copy.work = Mix::Work::copy;
        copy.add(weights_, 1);
        return;
    }
    if (stopping_ || !has_data_) return rest(actions);
    if (since_handed_over_ >= config_.tau && hand_over_ == 0 && workers_.size() > 1) hand_over(actions);
    begin_step(now, actions);
}

// The message holds the model as it is; a step makes another one.
void GossipWorker::hand_over(Actions& actions) {
    const WorkerId to = gossip_peer(config_.seed, config_.worker, hand_overs_, workers_);
    weight_ /= 2;
    since_handed_over_ = 0;
    const Message said(Gossip{to, hand_overs_++, weight_});
    sends_under_way_ += 2;
    actions.add<Send>(hand_over_ = next_id(), to + 1, Channel::gradient, said, Slice{weights_, 0, config_.parameters});
    actions.add<Send>(next_id(), 0, Channel::control, said, Slice{});
}

void GossipWorker::hand_in(Time now, BufferId copy, Actions& actions) {
    exchange_->steps = std::exchange(since_handed_in_, 0);
    exchange_->end_ns = now;
    ++sends_under_way_;
    actions.add<Send>(next_id(), 0, Channel::control, Message(*exchange_), Slice{});
    exchange_.reset();
    reduce_.begin({{copy, 0, config_.parameters}, {version_++, 1, weight_, now}}, false);
    go_on_reducing(actions);
}

// Nobody tells a worker how far the run has come: it takes all others to be as fast as itself.
double GossipWorker::rate() const {
    const double run = static_cast<double>(samples_) * static_cast<double>(workers_.size());
    return scheduled_rate(config_.optimizer, run / static_cast<double>(config_.data.samples));
}

void GossipWorker::begin_step(Time now, Actions& actions) {
    phase_ = Phase::computing;
    steps_.begin(version_, std::numeric_limits<std::int32_t>::max(), rate(), now);
    steps_.compute(now, weights_, next_id(), actions);
}

void GossipWorker::on(Time now, const GradientReady& event, Actions& actions) {
    steps_.note(event);
    if (stopping_) {
        actions.add<Release>(event.gradient);
        cancelled_ = true;
        return at_boundary(now, actions);
    }
    ++books_.gradients;
    ++sends_under_way_;
    steps_.tell(now, next_id(), actions);
    book(now);
    phase_ = Phase::stepping;
    steps_.step(std::exchange(weights_, no_buffer), event.gradient, next_id(), actions);
}

void GossipWorker::on(Time now, const Cancelled& event, Actions& actions) {
    steps_.note(event);
    cancelled_ = true;
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
        return go_on_reducing(actions);
    }
    if (mixing_ == 0 || event.id != mixing_) throw std::logic_error("a mean that the worker did not ask for");
    mixing_ = 0;
    if (phase_ == Phase::merging) {
        weights_ = event.out;
        weight_ += handed_.front().weight;
        let_go(handed_.front().model.buffer, actions);
        handed_.pop_front();
        if (!stopping_) ++books_.pulls;
    } else {
        hand_in(now, event.out, actions);
    }
    at_boundary(now, actions);
}

void GossipWorker::go_on_reducing(Actions& actions) {
    reduce_.go_on([this] { return next_id(); }, actions);
    if (!reduce_.done()) return;
    const TreeReduce::Sum sum = reduce_.take();
    sharing_ = sum.mean.buffer;
    share_ = next_id();
    left_ = last_;
    ++sends_under_way_;
    actions.add<Send>(share_, reduce_.parent(), Channel::gradient, Message(sum.said), sum.mean);
}

void GossipWorker::on(Time now, const Taken& event, Actions& actions) {
    --sends_under_way_;
    steps_.on(event);
    if (event.id == hand_over_) hand_over_ = 0;
    if (event.id == bye_) said_bye_ = true;
    if (event.id == share_) {
        share_ = 0;
        let_go(sharing_, actions);
        if (phase_ == Phase::resting && exchange_) return at_boundary(now, actions);
    }
    try_leave(actions);
}

void GossipWorker::rest(Actions& actions) {
    phase_ = Phase::resting;
    try_leave(actions);
}

// It says that it has come to rest once all it has sent is there, and leaves once it has no part in the last mean.
void GossipWorker::try_leave(Actions& actions) {
    if (!stopping_ || phase_ != Phase::resting || sends_under_way_ > 0) return;
    if (bye_ == 0) {
        bye_ = next_id();
        ++sends_under_way_;
        steps_.say_bye(bye_, cancelled_, actions);
        return;
    }
    if (!left_) return;
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    let_go(weights_, actions);
    actions.add<Finish>();
}

Time& GossipWorker::account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::computing:
        case Phase::stepping: return books.compute_ns;
        case Phase::copying: return books.push_queued_ns;
        case Phase::merging: return books.pull_moving_ns;
        case Phase::waiting:
        case Phase::resting:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

// What is under way at the end no longer serves the run.
void GossipWorker::book(Time now) {
    if (!stopping_ && phase_ != Phase::finished) account(books_) += now - since_ns_;
    since_ns_ = now;
}

WorkerRow GossipWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

void GossipWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    steps_.leave_over(phase_ == Phase::computing || (cancelled_ && !said_bye_), actions);
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    actions.add<Finish>();
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
        case Phase::finished: return "";
        case Phase::resting: break;
    }
    if (exchange_ && came_ < expected_)
        return "waits for " + std::to_string(expected_ - came_) + " models that others have handed it";
    if (reduce_.begun() && reduce_.waits_for() >= 0)
        return "waits for what worker " + std::to_string(reduce_.waits_for()) + " has";
    if (sends_under_way_ > 0) return "waits until others take what it has sent";
    return "waits for the monitor";
}

std::string GossipWorker::describe() const {
    return "worker " + std::to_string(config_.worker) + ", last in mean " + std::to_string(version_) + ": " +
           std::to_string(begun()) + " gradients begun, " + std::to_string(taken_) + " steps taken, " +
           std::to_string(hand_overs_) + " models handed on; " + (finished() ? "finished" : waiting());
}

}  // namespace rubato
