// Watches a run for what its policy promises of leads, waits and staleness.
#pragma once

#include "support/checkers.hpp"

#include <deque>
#include <limits>

namespace rubato::test {

/// Counts pushes as they are applied and looks at each word by which the server lets a worker go on. For runs in which
/// no worker is ever without a batch. Workers may crash and return: what the server hears of it takes its turn among
/// the pushes, and one that is back has the fewest pushes of the others, or its own where that is more.
class LeadChecker {
public:
    explicit LeadChecker(const Scenario& scenario)
        : protocol_(scenario.protocol), pushes_(static_cast<std::size_t>(scenario.lambda()), 0) {
        away_.assign(pushes_.size(), false);
        down_.assign(pushes_.size(), false);
    }

    void see(RoleId role, const Event& event, const Actions& actions) {
        if (role != 0) return;
        note(event);
        const GradientRow* last = nullptr;
        bool there = false;  // the worker of the last, as far as the server knows
        for (const auto& row : actions.gradients) {
            if (row.outcome != Outcome::applied) continue;
            ++pushes_[static_cast<std::size_t>(row.worker)];
            last = &row;
            there = !down_[static_cast<std::size_t>(row.worker)];
            push_gap = std::max(push_gap, lead(row.worker));
            while (!turns_.empty() && turns_.front().what != Turn::push) take_turn();
            if (!turns_.empty()) turns_.pop_front();
        }
        while (!turns_.empty() && turns_.front().what != Turn::push) take_turn();
        bool told = false;
        for (const auto& action : actions.list) {
            const auto* send = std::get_if<Send>(&action);
            if (!send) continue;
            stopping_ = stopping_ || std::holds_alternative<Stop>(send->message);
            if (stopping_) continue;
            if (const auto* weights = std::get_if<Weights>(&send->message); weights && weights->batch.count > 0)
                start_gap = std::max(start_gap, lead(send->to - 1));
            if (!std::holds_alternative<Ok>(send->message)) continue;
            told = told || (last && send->to == last->worker + 1);
            start_gap = std::max(start_gap, lead(send->to - 1));
            if (protocol_.name == "bounded-delay") check_dependencies(send->to - 1);
        }
        for (const auto& row : actions.controller)
            demand(row.granted >= 0 && row.granted <= protocol_.dssp.r_max, "a grant beyond r_max");
        // The slowest worker never waits.
        const bool family = protocol_.name == "ssp" || protocol_.name == "dssp" || protocol_.name == "asp";
        if (family && last && std::holds_alternative<Applied>(event) && !stopping_ && lead(last->worker) == 0 && there)
            demand(told, "the slowest worker waits");
    }

    std::int64_t start_gap = 0, push_gap = 0;
    std::int64_t return_gap = 0;  ///< how far ahead one came back

private:
    struct Turn {
        enum { push, lost, back } what;
        std::size_t worker;
    };
    /// What the server will deal with in its turn.
    void note(const Event& event) {
        if (const auto* delivered = std::get_if<Delivered>(&event)) {
            if (std::holds_alternative<Push>(delivered->message))
                turns_.push_back({Turn::push, static_cast<std::size_t>(delivered->from - 1)});
        } else if (const auto* lost = std::get_if<PeerDown>(&event)) {
            const auto worker = static_cast<std::size_t>(lost->peer - 1);
            down_[worker] = true;
            // Again, before its return had its turn.
            if (std::erase_if(turns_, [&](const Turn& it) { return it.what == Turn::back && it.worker == worker; }) ==
                0)
                turns_.push_back({Turn::lost, worker});
        } else if (const auto* back = std::get_if<PeerBack>(&event)) {
            turns_.push_back({Turn::back, static_cast<std::size_t>(back->peer - 1)});
        }
    }
    void take_turn() {
        const Turn turn = turns_.front();
        turns_.pop_front();
        if (turn.what == Turn::back && lowest() < std::numeric_limits<std::int64_t>::max())
            pushes_[turn.worker] = std::max(pushes_[turn.worker], lowest());
        away_[turn.worker] = turn.what == Turn::lost;
        if (turn.what == Turn::back) down_[turn.worker] = false;
        if (turn.what == Turn::back) return_gap = std::max(return_gap, lead(static_cast<WorkerId>(turn.worker)));
    }
    /// Of those who are there.
    std::int64_t lowest() const {
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        for (std::size_t i = 0; i < pushes_.size(); ++i)
            if (!away_[i]) least = std::min(least, pushes_[i]);
        return least;
    }
    std::int64_t lead(WorkerId worker) const { return pushes_[static_cast<std::size_t>(worker)] - lowest(); }
    void check_dependencies(WorkerId worker) const {
        const auto lambda = static_cast<std::int64_t>(pushes_.size());
        const auto done = [&](std::int64_t t) { return pushes_[static_cast<std::size_t>(t % lambda)] > t / lambda; };
        const auto needed = pushes_[static_cast<std::size_t>(worker)] * lambda + worker - protocol_.k;
        for (std::int64_t t = protocol_.single_dependency ? std::max<std::int64_t>(0, needed) : 0; t <= needed; ++t)
            demand(done(t), "an iteration started before one that it depends on was done");
    }
    const ProtocolSpec& protocol_;
    std::vector<std::int64_t> pushes_;
    std::vector<bool> away_, down_;  ///< as the policy has been told; as the server has
    std::deque<Turn> turns_;
    bool stopping_ = false;
};

/// The largest staleness that the policy allows.
inline std::int64_t staleness_limit(const Scenario& scenario) {
    const auto& protocol = scenario.protocol;
    const std::int64_t lambda = scenario.lambda(), none = std::numeric_limits<std::int64_t>::max();
    const auto of_lead = [&](std::int64_t bound) { return (lambda - 1) * (2 * bound + 1); };
    if (scenario.workers.communication.pull_every > 1) return none;  // staleness counts from the last pull
    if (protocol.name == "hardsync" || protocol.name == "backup-workers" || protocol.name == "rennala") return 0;
    if (protocol.name == "bsp") return protocol.per_gradient ? lambda - 1 : 0;
    if (protocol.name == "ssp" && protocol.bound) return *protocol.bound == 0 ? lambda - 1 : of_lead(*protocol.bound);
    if (protocol.name == "dssp" && protocol.dssp.mode == DsspSpec::Mode::strict)
        return of_lead(protocol.dssp.lower_bound + protocol.dssp.r_max);
    if (protocol.name == "bounded-delay" && !protocol.single_dependency) return 2 * (protocol.k - 1);
    if (protocol.name == "ringmaster") return protocol.delay_threshold - 1;
    if (protocol.name == "admission") return *protocol.bound;
    return none;
}

inline void check_staleness(const Scenario& scenario, const Ledger& ledger) {
    const auto limit = staleness_limit(scenario);
    for (const auto& row : ledger.gradients)
        if (row.outcome == Outcome::applied)
            demand(row.staleness() <= limit, "staleness " + std::to_string(row.staleness()) + " beyond " +
                                                 std::to_string(limit) + " of " + scenario.protocol.name);
}

}  // namespace rubato::test
