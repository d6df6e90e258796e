#include "core/shard_worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

ShardWorker::ShardWorker(const ShardWorkerConfig& config) : config_(config) {
    for (int shard = 0; shard < config.shards.used(); ++shard)
        sides_.emplace_back(
            Side{.shard = shard, .role = config.shards.role(shard), .range = config.shards.range(shard)});
    gradient_.read.resize(sides_.size());
    unanswered_ = sides_.size();
    books_.worker = config.worker;
}

void ShardWorker::step(Time now, const Event& event, Actions& actions) {
    if (config_.overlaps) {
        if (phase_ == Phase::computing && !stopping_ && untaken_ + unanswered_ > 0) books_.hidden_ns += now - seen_ns_;
        seen_ns_ = now;
    }
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

ShardWorker::Side& ShardWorker::side_of(RoleId role) {
    const int shard = config_.shards.shard_of(role);
    if (shard < 0 || static_cast<std::size_t>(shard) >= sides_.size())
        throw std::logic_error("a worker was sent a message of somebody who is none of its shards");
    return sides_[static_cast<std::size_t>(shard)];
}

void ShardWorker::on(Time now, const Start& event, Actions&) {
    if (config_.overlaps)
        weights_.begin_beside(event.weights);
    else
        weights_.begin(event.weights);
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    since_ns_ = now;
    for (Side& side : sides_) side.asked_ns = side.pull_ns = now;
}

void ShardWorker::on(Time now, const Delivered& event, Actions& actions) {
    Side& side = side_of(event.from);
    if (const auto* weights = std::get_if<Weights>(&event.message)) {
        side.version = weights->version;
        ++books_.pulls;
        if (stopping_)
            actions.add<Release>(event.payload.buffer);
        else
            weights_.add(event.payload);
        on_reply(now, side, event, *weights, actions);
    } else if (const auto* proceed = std::get_if<Proceed>(&event.message)) {
        on_reply(now, side, event, *proceed, actions);
    } else if (const auto* ok = std::get_if<Ok>(&event.message)) {
        if (stopping_) return;
        side.held_ns += ok->held_ns;
        side.queued_ns += ok->queued_ns;
        inquire(now, side, actions);
    } else if (const auto* stop = std::get_if<Stop>(&event.message)) {
        on_stop(now, side, *stop, actions);
    } else {
        throw std::logic_error("a worker was sent a message that is not for workers of shards");
    }
}

template <class Reply>
void ShardWorker::on_reply(Time now, Side& side, const Delivered& event, const Reply& reply, Actions& actions) {
    if (reply.version != side.version)
        throw std::logic_error("a worker was told to proceed on weights that it does not hold");
    ++side.replies;
    if (std::exchange(side.asked, false)) --unanswered_;
    if (stopping_) return try_leave(actions);
    side.held_ns += reply.held_ns;
    side.queued_ns += reply.queued_ns;
    if (side.placed == side.version) side.pull_ns = side.asked_ns;
    const bool deals = !config_.draws && (side.shard == 0 || config_.all_deal);
    side.ready = !deals || reply.batch.count > 0;
    if (side.shard == 0) batch_ = reply.batch;
    answer_ = {
        config_.overlaps ? side.asked_ns : 0, event.sent_ns, side.held_ns, side.queued_ns, event.started_ns, now};
    place(actions);
    if (side.shard == 0 && !side.ready) {  // no part in this round: it keeps the weights and waits on
        if (phase_ == Phase::waiting) end_wait(now);
        return;
    }
    try_begin(now, actions);
}

void ShardWorker::place(Actions& actions) {
    if (weights_.waits()) weights_.place(next_id(), actions);
}

void ShardWorker::on(Time now, const Placed& event, Actions& actions) {
    const Slice part = weights_.on(event, actions);
    Side& side = *std::find_if(sides_.begin(), sides_.end(), [&](auto& it) { return it.range.first == part.first; });
    side.placed = side.version;
    side.pull_ns = side.asked_ns;
    place(actions);
    if (stopping_) return try_leave(actions);
    try_begin(now, actions);
}

// One that draws its own batches waits for the first words alone.
bool ShardWorker::may_begin() const {
    if (stopping_ || phase_ != Phase::waiting) return false;
    if (config_.draws && begun_ > 0) return true;
    return (config_.draws || weights_.settled()) &&
           std::all_of(sides_.begin(), sides_.end(), [](const Side& it) { return it.ready; });
}

void ShardWorker::try_begin(Time now, Actions& actions) {
    if (!may_begin()) return;
    if (!config_.overlaps)
        for (Side& side : sides_) side.pull_ns = since_ns_;
    end_wait(now);
    take_parts(actions);
    const Batch batch = config_.draws ? own_batch(config_.data, config_.worker, begun_) : batch_;
    if (batch.count == 0) return;  // it has no part of the data
    Push& record = gradient_.record;
    record = Push{};
    record.worker_seq = begun_++;
    record.batch = batch;
    record.begin_ns = now;
    phase_ = Phase::computing;
    compute_ = next_id();
    actions.add<Compute>(compute_, config_.overlaps ? weights_.base() : weights_.weights(), batch, record.worker_seq);
    if (!config_.overlaps) return;
    for (Side& side : sides_)
        if (!side.asked && side.placed == side.version) inquire(now, side, actions);
}

void ShardWorker::take_parts(Actions& actions) {
    const bool all = !config_.overlaps || weights_.swap(actions);
    mixed_ = false;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
        Side& side = sides_[i];
        Read& read = gradient_.read[i];
        side.ready = false;
        if (all || side.placed == read.version) read = {side.placed, side.pull_ns};
        mixed_ = mixed_ || read.version != gradient_.read[0].version;
    }
}

void ShardWorker::end_wait(Time now) {
    book_wait(books_, since_ns_, now, answer_);
    for (Side& side : sides_) side.held_ns = side.queued_ns = 0;
    since_ns_ = now;
}

void ShardWorker::inquire(Time now, Side& side, Actions& actions) {
    ++books_.inquiries;
    ++unanswered_;
    side.asked = true;
    side.asked_ns = now;
    send<Inquiry>(side, Sending::What::inquiry, Channel::control, {}, actions, side.version);
}

void ShardWorker::on(Time now, const GradientReady& event, Actions& actions) {
    gradient_.record.begin_ns = event.begin_ns;
    gradient_.record.end_ns = event.end_ns;
    gradient_.record.loss = event.loss;
    ready_ = event.gradient;
    if (stopping_) return cut_short(actions);
    ++books_.gradients;
    if (mixed_) ++books_.mixed;
    books_.compute_ns += now - since_ns_;
    since_ns_ = now;
    phase_ = Phase::ready;
    if (untaken_ == 0) push(now, actions);
    try_begin(now, actions);
}

Push ShardWorker::record_for(const Side& side, const Gradient& gradient) const {
    const Read& read = gradient.read[static_cast<std::size_t>(&side - sides_.data())];
    Push record = gradient.record;
    record.read_version = read.version;
    record.pull_ns = read.pull_ns;
    return record;
}

void ShardWorker::push(Time now, Actions& actions) {
    gradient_.record.push_ns = now;
    pushed_ = gradient_;
    pushing_ = std::exchange(ready_, no_buffer);
    phase_ = config_.overlaps ? Phase::waiting : Phase::pushing;
    ++pushes_;
    untaken_ = sides_.size();
    for (Side& side : sides_) {
        side.pushing = true;
        send<Push>(side, Sending::What::push, Channel::gradient, {pushing_, side.range.first, side.range.count},
                   actions, record_for(side, pushed_));
    }
}

void ShardWorker::on(Time now, const Taken& event, Actions& actions) {
    const auto found =
        std::find_if(sendings_.begin(), sendings_.end(), [&](const Sending& it) { return it.id == event.id; });
    if (found == sendings_.end()) throw std::logic_error("a worker is told of a message that it did not send");
    const Sending sending = *found;
    sendings_.erase(found);
    Side& side = sides_[sending.side];
    --side.sends_under_way;
    if (sending.what == Sending::What::bye) side.left = true;
    if (sending.what == Sending::What::push) {
        side.pushing = false;
        if (--untaken_ == 0) return end_push(now, event, actions);
    }
    if (stopping_) try_leave(actions);
}

void ShardWorker::end_push(Time now, const Taken& last, Actions& actions) {
    if (!stopping_ && (phase_ == Phase::pushing || phase_ == Phase::ready)) {
        book_push(books_, since_ns_, now, last.started_ns);
        since_ns_ = now;
    }
    let_go(pushing_, actions);
    if (phase_ == Phase::pushing) phase_ = Phase::waiting;
    if (stopping_) return try_leave(actions);
    if (phase_ == Phase::ready) push(now, actions);
    if (!config_.overlaps && config_.word == Word::inquiry)
        for (Side& side : sides_) inquire(now, side, actions);
    try_begin(now, actions);
}

template <class Other>
void ShardWorker::on(Time, const Other&, Actions&) {
    if constexpr (!std::is_same_v<Other, TimerFired>)
        throw std::logic_error("a worker of shards was told what is not for it");
}

}  // namespace rubato
