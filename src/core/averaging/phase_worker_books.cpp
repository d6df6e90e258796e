// What a worker of averaging in phases says of itself: where its time went, and what it does.
#include "core/averaging/phase_worker.hpp"

namespace rubato {

Time& PhaseWorker::account(WorkerRow& books) const {
    switch (phase_) {
        case Phase::pulling:
        case Phase::computing:
        case Phase::drawing:
        case Phase::stepping: return books.compute_ns;
        case Phase::copying: return books.push_queued_ns;
        case Phase::preparing:
        case Phase::taking: return books.pull_moving_ns;
        case Phase::waiting:
        case Phase::resting:
        case Phase::down:
        case Phase::finished: break;
    }
    return books.idle_ns;
}

WorkerRow PhaseWorker::books(Time now) const {
    return closed_books(books_, now, [this](WorkerRow& row) -> Time& { return account(row); });
}

std::string PhaseWorker::waiting() const {
    switch (phase_) {
        case Phase::waiting: return "waits for the driver's first word";
        case Phase::preparing:
        case Phase::taking: return "takes what it was sent of the joint model";
        case Phase::copying: return "copies its part of shard " + std::to_string(exchanged_.shard);
        case Phase::pulling: return "moves towards the joint model";
        case Phase::computing: return "computes gradient " + std::to_string(steps_.record().worker_seq);
        case Phase::drawing:
        case Phase::stepping: return "takes a step of its own";
        case Phase::down: return "is down";
        case Phase::finished: return "";
        case Phase::resting: break;
    }
    if (bye_ != 0) return "waits until its last word is taken by the driver";
    if (reduce_.begun() && reduce_.waits_for() >= 0)
        return "waits for what worker " + std::to_string(reduce_.waits_for()) + " has";
    if (passing_.sending()) return "passes the joint model on to worker " + std::to_string(passing_.sends_to() - 1);
    return stopping_ ? "waits for messages under way before it says its last word" : "waits for the driver";
}

std::string PhaseWorker::describe() const {
    return "worker " + std::to_string(config_.worker) + ", drawn to version " + std::to_string(version_) + ": " +
           std::to_string(begun()) + " gradients begun, " + std::to_string(taken_) + " steps taken; " +
           (finished() ? "finished" : waiting());
}

}  // namespace rubato
