// The end of a worker of shards, and what it tells of itself.
#include "core/shard_worker.hpp"

namespace rubato {

// The first Stop of any shard ends the work; each shard tells by itself how many replies it has sent.
void ShardWorker::on_stop(Time now, Side& side, const Stop& stop, Actions& actions) {
    side.replies_expected = stop.replies;
    close_books(now);  // the run lasts until the last shard has ended
    since_ns_ = now;
    if (!stopping_) {
        stopping_ = true;
        weights_.drop_parts(actions);
        if (phase_ == Phase::computing) actions.add<Cancel>(compute_);
        if (phase_ == Phase::ready) return cut_short(actions);
    }
    try_leave(actions);
}

void ShardWorker::on(Time, const Cancelled& event, Actions& actions) {
    gradient_.record.begin_ns = event.begin_ns;
    cut_short(actions);
}

void ShardWorker::cut_short(Actions& actions) {
    let_go(ready_, actions);
    cancelled_ = true;
    phase_ = Phase::waiting;
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
                  cancelled_ ? record_for(side, gradient_) : Push{});
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
    return phase_ == Phase::pushing || phase_ == Phase::ready ? books.push_moving_ns : books.idle_ns;
}

WorkerRow ShardWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return open_account(row); });
}

void ShardWorker::state_lost(const Side& side, const Gradient& gradient, Outcome outcome, Actions& actions) const {
    GradientRow row = unapplied_row(config_.worker, record_for(side, gradient), outcome);
    if (outcome == Outcome::cancelled) row.end_ns = row.push_ns = -1;
    actions.shards.push_back(shard_row(side.shard, row));
    if (side.shard == 0) actions.gradients.push_back(row);
}

// Shards that have taken their part, or the word that the gradient was cancelled, state what became of it.
void ShardWorker::on(Time now, const Abandoned&, Actions& actions) {
    if (!stopping_) close_books(now);
    const bool cut = phase_ == Phase::computing || phase_ == Phase::ready || cancelled_;
    for (const Side& side : sides_) {
        if (side.pushing) state_lost(side, pushed_, Outcome::leftover, actions);
        if (cut && !side.left) state_lost(side, gradient_, Outcome::cancelled, actions);
    }
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    actions.add<Finish>();
}

std::string ShardWorker::waiting() const {
    const auto list = [&](auto&& which) {
        std::string text;
        for (const Side& side : sides_)
            if (which(side)) text += (text.empty() ? "shard " : ", ") + std::to_string(side.shard);
        return text;
    };
    const auto number = [](const Gradient& it) { return std::to_string(it.record.worker_seq); };
    switch (phase_) {
        case Phase::waiting:
            if (stopping_) return "waits until it can say its last word to " + list([](auto& it) { return !it.left; });
            return "waits for the answer of " + list([](auto& it) { return !it.ready; });
        case Phase::computing: return "computes gradient " + number(gradient_);
        case Phase::ready:
            return "waits with gradient " + number(gradient_) + " until gradient " + number(pushed_) + " is taken by " +
                   list([](auto& it) { return it.pushing; });
        case Phase::pushing:
            return "waits until gradient " + number(pushed_) + " is taken by " +
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
