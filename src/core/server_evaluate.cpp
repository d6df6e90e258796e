// The server's evaluations.
#include "core/server.hpp"

#include "core/target.hpp"

#include <utility>

namespace rubato {

// At the end of the run nobody is to be held any more.
void Server::evaluation_due(Time now, Actions& actions) {
    if (!config_.pause_to_evaluate || stopping_) return evaluate(now, actions);
    pause_ = Pause::draining;  // also where one is under way: a crash may complete an update meanwhile
    try_evaluate(now, actions);
}

// Gradients that wait in a round for others are not in flight: they wait on.
void Server::try_evaluate(Time now, Actions& actions) {
    if (busy_ || inbox_head_ < inbox_.size()) return;
    for (const auto& it : peers_)
        if (it.busy) return;
    pause_ = Pause::evaluating;
    evaluate(now, actions);
}

void Server::try_end_pause(Time now, Actions& actions) {
    if (pause_ != Pause::evaluating || !evaluations_.empty() || busy_) return;
    pause_ = Pause::none;
    if (!begun_) {
        begin_workers(now, actions);
    } else if (round_held_ns_ >= 0) {
        release_round(now, actions);
        carry_out(now, now, actions);
    }
    for (const Work& work : std::exchange(held_, {}))
        answer(now, work.from, work.arrived_ns, std::get<Inquiry>(work.message).have, true, actions);
}

void Server::evaluate(Time now, Actions& actions) {
    EvalRow row;
    row.time_ns = now;
    row.version = version_;
    row.epoch = epoch();
    row.samples = accepted_samples_;
    if (loss_count_ > 0) row.train_loss = loss_sum_ / static_cast<double>(loss_count_);
    loss_sum_ = boundary_.loss_sum = 0;
    loss_count_ = boundary_.loss_count = 0;
    evaluated_ = version_;
    const auto id = next_id();
    evaluations_.push_back({id, row});
    if (config_.shards.any()) return gather(id, actions);
    actions.add<Evaluate>(id, weights_, version_);
}

void Server::on(Time now, const Evaluated& event, Actions& actions) {
    if (const auto row = end_evaluation(evaluations_, event, actions)) {
        if (loss_diverged(*row)) diverge(-1, -1, row->version);
        if (!stopping_ && diverged_ && config_.stop_on_divergence) begin_stop(now, Status::diverged, actions);
        if (!stopping_ && config_.target && reaches(*row, *config_.target)) begin_stop(now, Status::finished, actions);
    }
    try_end_pause(now, actions);
    if (stopping_) try_finish(now, actions);
}

}  // namespace rubato
