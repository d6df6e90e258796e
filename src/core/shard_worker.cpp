#include "core/shard_worker.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rubato {

ShardWorker::ShardWorker(const ShardWorkerConfig& config) : config_(config) {
    for (int shard = 0; shard < config.shards.used(); ++shard)
        sides_.emplace_back(
            Side{.shard = shard, .role = config.shards.role(shard), .range = config.shards.range(shard)});
    read_.resize(sides_.size());
    books_.worker = config.worker;
}

void ShardWorker::step(Time now, const Event& event, Actions& actions) {
    std::visit([&](const auto& alternative) { on(now, alternative, actions); }, event);
}

ShardWorker::Side& ShardWorker::side_of(RoleId role) {
    const int shard = config_.shards.shard_of(role);
    if (shard < 0 || static_cast<std::size_t>(shard) >= sides_.size())
        throw std::logic_error("a worker was sent a message of somebody who is none of its shards");
    return sides_[static_cast<std::size_t>(shard)];
}

void ShardWorker::on(Time now, const Start& event, Actions&) {
    weights_.begin(event.weights);
    books_.idle_ns += std::max<Time>(0, now - books_.sum_ns());
    since_ns_ = now;
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
        inquire(side, actions);
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
    if (stopping_) return try_leave(actions);
    side.held_ns += reply.held_ns;
    side.queued_ns += reply.queued_ns;
    const bool deals = side.shard == 0 || config_.all_deal;
    side.ready = !deals || reply.batch.count > 0;
    if (side.shard == 0) batch_ = reply.batch;
    last_ = static_cast<std::size_t>(&side - sides_.data());
    last_sent_ns_ = event.sent_ns;
    last_moving_ns_ = now - event.started_ns;
    place(actions);
    if (side.shard == 0 && !side.ready) {  // no part in this round: it keeps the weights and waits on
        if (phase_ == Phase::waiting) book_wait(now);
        return;
    }
    try_begin(now, actions);
}

void ShardWorker::place(Actions& actions) {
    if (weights_.waits()) weights_.place(next_id(), actions);
}

void ShardWorker::on(Time now, const Placed& event, Actions& actions) {
    weights_.on(event, actions);
    place(actions);
    if (stopping_) return try_leave(actions);
    try_begin(now, actions);
}

void ShardWorker::try_begin(Time now, Actions& actions) {
    if (phase_ != Phase::waiting || !weights_.settled()) return;
    for (const Side& side : sides_)
        if (!side.ready) return;
    const Time asked_ns = since_ns_;
    book_wait(now);
    mixed_ = false;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
        sides_[i].ready = false;
        read_[i] = sides_[i].version;
        mixed_ = mixed_ || read_[i] != read_[0];
    }
    record_ = Push{};
    record_.read_version = read_[0];
    record_.worker_seq = begun_++;
    record_.batch = batch_;
    record_.pull_ns = asked_ns;
    record_.begin_ns = now;
    phase_ = Phase::computing;
    compute_ = next_id();
    actions.add<Compute>(compute_, weights_.weights(), batch_, record_.worker_seq);
}

void ShardWorker::book_wait(Time now) {
    Side& last = sides_[last_];
    const Time whole = now - since_ns_;
    const Time moving = std::clamp<Time>(last_moving_ns_, 0, whole);
    const Time before_send = std::clamp<Time>(last_sent_ns_ - since_ns_, 0, whole - moving);
    const Time held = std::min(last.held_ns, before_send);
    const Time queued = std::min(last.queued_ns, before_send - held);
    books_.policy_wait_ns += held;
    books_.apply_wait_ns += queued;
    books_.pull_moving_ns += moving;
    books_.pull_request_ns += whole - held - queued - moving;
    for (Side& side : sides_) side.held_ns = side.queued_ns = 0;
    since_ns_ = now;
}

void ShardWorker::inquire(Side& side, Actions& actions) {
    ++books_.inquiries;
    send<Inquiry>(side, Sending::What::inquiry, Channel::control, {}, actions, side.version);
}

void ShardWorker::on(Time now, const GradientReady& event, Actions& actions) {
    record_.begin_ns = event.begin_ns;
    record_.end_ns = event.end_ns;
    record_.loss = event.loss;
    if (stopping_) {
        actions.add<Release>(event.gradient);
        return cut_short(now, actions);
    }
    ++books_.gradients;
    if (mixed_) ++books_.mixed;
    push(now, event.gradient, actions);
}

Push ShardWorker::record_for(const Side& side) const {
    Push record = record_;
    record.read_version = read_[static_cast<std::size_t>(&side - sides_.data())];
    return record;
}

void ShardWorker::push(Time now, BufferId gradient, Actions& actions) {
    books_.compute_ns += now - since_ns_;
    since_ns_ = now;
    record_.push_ns = now;
    phase_ = Phase::pushing;
    gradient_ = gradient;
    ++pushes_;
    for (Side& side : sides_) {
        side.pushing = true;
        send<Push>(side, Sending::What::push, Channel::gradient, {gradient_, side.range.first, side.range.count},
                   actions, record_for(side));
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
        if (std::none_of(sides_.begin(), sides_.end(), [](const Side& it) { return it.pushing; }))
            return end_push(now, event, actions);
    }
    if (stopping_) try_leave(actions);
}

void ShardWorker::end_push(Time now, const Taken& last, Actions& actions) {
    if (!stopping_) {
        const Time queued = std::clamp<Time>(last.started_ns - since_ns_, 0, now - since_ns_);
        books_.push_queued_ns += queued;
        books_.push_moving_ns += now - since_ns_ - queued;
        since_ns_ = now;
    }
    actions.add<Release>(std::exchange(gradient_, no_buffer));
    phase_ = Phase::waiting;
    if (stopping_) return try_leave(actions);
    if (config_.word == Word::inquiry)
        for (Side& side : sides_) inquire(side, actions);
    try_begin(now, actions);
}

void ShardWorker::on(Time now, const Cancelled& event, Actions& actions) {
    record_.begin_ns = event.begin_ns;
    cut_short(now, actions);
}

void ShardWorker::cut_short(Time, Actions& actions) {
    cancelled_ = true;
    phase_ = Phase::waiting;
    try_leave(actions);
}

// The first Stop of any shard ends the work; each shard tells by itself how many replies it has sent.
void ShardWorker::on_stop(Time now, Side& side, const Stop& stop, Actions& actions) {
    side.replies_expected = stop.replies;
    close_books(now);  // the run lasts until the last shard has ended
    since_ns_ = now;
    if (!stopping_) {
        stopping_ = true;
        weights_.drop_parts(actions);
        if (phase_ == Phase::computing) actions.add<Cancel>(compute_);
    }
    try_leave(actions);
}

void ShardWorker::try_leave(Actions& actions) {
    if (phase_ != Phase::waiting || weights_.placing()) return;
    bool all_left = true;
    for (Side& side : sides_) {
        all_left = all_left && side.left;
        if (side.bye || side.sends_under_way > 0 || side.replies_expected < 0 || side.replies < side.replies_expected)
            continue;
        side.bye = true;
        send<Bye>(side, Sending::What::bye, Channel::control, {}, actions, pushes_, cancelled_,
                  cancelled_ ? record_for(side) : Push{});
    }
    if (!all_left) return;
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    weights_.drop(actions);
    actions.add<Finish>();
}

// What is still under way at the end no longer serves the run.
void ShardWorker::close_books(Time now) {
    if (phase_ != Phase::finished) open_account(books_) += now - since_ns_;
}

Time& ShardWorker::open_account(WorkerRow& books) const {
    if (phase_ == Phase::computing) return books.compute_ns;
    return phase_ == Phase::pushing ? books.push_moving_ns : books.idle_ns;
}

WorkerRow ShardWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return open_account(row); });
}

// Shards that have taken their part, or the word that the gradient was cancelled, state what became of it.
void ShardWorker::on(Time now, const Abandoned&, Actions& actions) {
    if (!stopping_) close_books(now);
    const bool cut = phase_ == Phase::computing || cancelled_;
    for (const Side& side : sides_) {
        if (!(phase_ == Phase::pushing && side.pushing) && !(cut && !side.left)) continue;
        GradientRow row = unapplied_row(config_.worker, record_for(side), cut ? Outcome::cancelled : Outcome::leftover);
        if (cut) row.end_ns = row.push_ns = -1;
        actions.shards.push_back(shard_row(side.shard, row));
        if (side.shard == 0) actions.gradients.push_back(row);
    }
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    actions.add<Finish>();
}

template <class Other>
void ShardWorker::on(Time, const Other&, Actions&) {
    if constexpr (!std::is_same_v<Other, TimerFired>)
        throw std::logic_error("a worker of shards was told what is not for it");
}

std::string ShardWorker::waiting() const {
    const auto list = [&](auto&& which) {
        std::string text;
        for (const Side& side : sides_)
            if (which(side)) text += (text.empty() ? "shard " : ", ") + std::to_string(side.shard);
        return text;
    };
    switch (phase_) {
        case Phase::waiting:
            if (stopping_) return "waits until it can say its last word to " + list([](auto& it) { return !it.left; });
            return "waits for the answer of " + list([](auto& it) { return !it.ready; });
        case Phase::computing: return "computes gradient " + std::to_string(record_.worker_seq);
        case Phase::pushing:
            return "waits until gradient " + std::to_string(record_.worker_seq) + " is taken by " +
                   list([](auto& it) { return it.pushing; });
        case Phase::finished: break;
    }
    return "";
}

std::string ShardWorker::describe() const {
    std::string versions;
    for (const Side& side : sides_) versions += (versions.empty() ? "" : ", ") + std::to_string(side.version);
    return "worker " + std::to_string(config_.worker) + " at versions " + versions + ": " + std::to_string(begun_) +
           " gradients begun, " + std::to_string(pushes_) + " pushed; " + (finished() ? "finished" : waiting());
}

}  // namespace rubato
