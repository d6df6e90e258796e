// How a worker without a server leaves, and what it says of itself.
#include "core/collective/collective_worker.hpp"

#include "core/let_go.hpp"
#include "core/worker_books.hpp"

#include <algorithm>

namespace rubato {

// No worker is behind: what this one needs for its last step all have done their part of.
void CollectiveWorker::try_leave(Actions& actions) {
    if (!over_ || iteration_ != last_ || !flights_.empty() || sends_under_way_ > 0 || bye_ != 0) return;
    phase_ = Phase::resting;
    bye_ = next_id();
    ++sends_under_way_;
    actions.send<Bye>(bye_, 0, Channel::control, {}, gradients_, false, Push{});
}

bool CollectiveWorker::communicating() const {
    return std::any_of(flights_.begin(), flights_.end(), [](const Flight& flight) {
        return std::any_of(flight.parts.begin(), flight.parts.end(),
                           [](const Part& part) { return part.reduce.begun() && !part.reduce.ready(); });
    });
}

Time& CollectiveWorker::account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::zeroing:
        case Phase::computing:
        case Phase::stepping: return books.compute_ns;
        case Phase::waiting: return books.push_moving_ns;
        case Phase::holding: return books.policy_wait_ns;
        case Phase::beginning:
        case Phase::copying:
        case Phase::resting:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

void CollectiveWorker::book(Time now) {
    if (phase_ == Phase::waiting) told_.waited_ns += now - since_ns_;
    if (phase_ != Phase::finished) account(books_) += now - since_ns_;
    since_ns_ = now;
}

WorkerRow CollectiveWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

// What has come to the monitor it states; all else is the worker's own to state.
void CollectiveWorker::on(Time now, const Abandoned&, Actions& actions) {
    book(now);
    for (const auto& [id, record] : told_of_)
        actions.gradients.push_back(unapplied_row(config_.worker, record, Outcome::leftover));
    if (phase_ == Phase::computing) {
        GradientRow row = unapplied_row(config_.worker, record_, Outcome::cancelled);
        row.end_ns = row.push_ns = -1;
        actions.gradients.push_back(row);
    }
    phase_ = Phase::finished;
    actions.workers.push_back(books_);
    actions.add<Finish>();
}

std::string CollectiveWorker::waiting() const {
    switch (phase_) {
        case Phase::beginning: return "copies the weights that it begins from";
        case Phase::holding: return "holds while version " + std::to_string(version_) + " is evaluated";
        case Phase::zeroing: return "makes a gradient of nothing";
        case Phase::computing: return "computes gradient " + std::to_string(record_.worker_seq);
        case Phase::stepping: return "applies gradient " + std::to_string(flights_.front().iteration);
        case Phase::copying: return "copies its weights for an evaluation";
        case Phase::finished: return "";
        case Phase::resting:
            if (bye_ != 0) return "waits until its last word is taken by the monitor";
            return sends_under_way_ > 0 ? "waits until others take what it has sent" : "waits for the monitor";
        case Phase::waiting: break;
    }
    for (const Flight& flight : flights_)
        for (const Part& part : flight.parts) {
            if (const int rank = part.reduce.waits_for(); rank >= 0)
                return "waits for worker " + std::to_string(rank) + "'s part of the sum of gradients " +
                       std::to_string(flight.iteration);
            if (part.reduce.in_library())
                return "waits for the sum of gradients " + std::to_string(flight.iteration) + " of all workers";
        }
    return "waits for the sum of gradients";
}

std::string CollectiveWorker::describe() const {
    return "worker " + std::to_string(config_.worker) + " at version " + std::to_string(version_) + ": " +
           std::to_string(gradients_) + " gradients begun, " + std::to_string(flights_.size()) + " not applied; " +
           (finished() ? "finished" : waiting());
}

}  // namespace rubato
