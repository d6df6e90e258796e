// What overlapping workers promise, watched from outside (INV-B1 to B3 and B6 of the paper's model).
#pragma once

#include "support/simulate.hpp"

#include <map>

namespace rubato::test {

/// What a worker may do at once, and with what.
class PipelineChecker {
public:
    explicit PipelineChecker(const Scenario& scenario)
        : lambda_(scenario.lambda()),
          pulls_all_(scenario.workers.pull == Pull::prefetch),
          tells_buffers_apart_(scenario.model.gradients) {}

    void see(RoleId role, const Event& event, const Actions& actions) {
        if (role == 0 || role > lambda_) return;
        auto& it = workers_[role];
        if (const auto* taken = std::get_if<Taken>(&event); taken != nullptr && taken->id == it.push) it.push = 0;
        if (std::holds_alternative<GradientReady>(event)) {
            ++it.computed;
            it.computes = false;
        }
        if (std::holds_alternative<Cancelled>(event)) it.computes = false;
        for (const auto& action : actions.list) {
            if (const auto* release = std::get_if<Release>(&action))
                demand(!tells_buffers_apart_ || !it.computes || release->buffer != it.weights,
                       "weights were let go while a gradient was computed on them");
            if (const auto* compute = std::get_if<Compute>(&action)) {
                demand(!it.computes, "two gradients were computed at once");
                demand(it.computed == it.pushed, "a gradient was begun before the one before it was handed over");
                it.computes = true;
                it.weights = compute->weights;
            }
            const auto* send = std::get_if<Send>(&action);
            const auto* push = send ? std::get_if<Push>(&send->message) : nullptr;
            if (push == nullptr) continue;
            demand(it.push == 0, "a gradient was pushed while another one was not taken");
            demand(push->count == 1 && push->worker_seq == it.pushed, "gradients were merged or dropped");
            demand(push->read_version >= it.version, "versions ran backwards");
            it.version = push->read_version;
            it.push = send->id;
            ++it.pushed;
        }
    }
    void at_end(const Ledger& ledger) const {
        std::map<WorkerId, std::int64_t> received;
        for (const auto& row : ledger.gradients)
            if (row.outcome != Outcome::cancelled) ++received[row.worker];
        for (const auto& [role, it] : workers_) {
            demand(received[role - 1] == it.pushed, "a gradient that was pushed was not received");
            demand(it.computed - it.pushed <= 1, "more than one gradient waits to be pushed");
        }
        for (const auto& row : ledger.workers)
            if (pulls_all_) demand(row.pulls <= row.gradients + 2, "more than one pull a gradient");
    }

private:
    struct Its {
        ActionId push = 0;
        std::int64_t computed = 0, pushed = 0;
        Version version = 0;
        bool computes = false;
        BufferId weights = no_buffer;
    };
    std::map<RoleId, Its> workers_;
    int lambda_;
    bool pulls_all_, tells_buffers_apart_;
};

}  // namespace rubato::test
