// Runs in parts: cut off at a checkpoint, and going on from it.
#pragma once

#include "support/simulate.hpp"
#include "support/temporary_directory.hpp"
#include "swarm/draw.hpp"
#include "trace/checkpoint_writer.hpp"

#include <doctest/doctest.h>

#include <atomic>

namespace rubato::test {

/// One part of a run: from the beginning or from a checkpoint.
struct Part {
    trace::DriverReport report;
    Ledger ledger;
    std::map<Version, Ledger> at_save;  ///< what was stated until each Save
    std::map<Version, std::int64_t> steps_at_save;
    std::int64_t started = 0;
};

inline Part run_part(const Draw& it, const learn::Task* task, const std::string& directory,
                     const trace::Checkpoint* resume, std::int64_t interrupt_after = -1,
                     const Watcher& watch = nullptr) {
    IdealNetwork network(sim::star_hosts(it.scenario), it.network.latency_s, it.network.bandwidth, it.network.jitter,
                         it.network.seed);
    const auto placement = sim::place(it.scenario, network.hosts());
    trace::CheckpointWriter writer(directory, {}, resume, [](const std::string& line) { FAIL(line); });
    Part part;
    StepChecker checker;
    std::atomic<bool> interrupted{false};
    sim::RunInput input;
    input.scenario = &it.scenario;
    input.task = task;
    input.samples = it.samples;
    input.parameters = task ? task->parameters() : parts_alone(it.scenario) ? 0 : 1;
    input.checkpoints = &writer;
    input.resume = resume;
    input.interrupted = &interrupted;
    if (resume) checker.expect_evaluations(resume->head.roles.server.evaluations);
    input.observer = [&](Time now, RoleId role, const Event& event, const Actions& actions) {
        checker.see(now, role, event, actions);
        if (watch) watch(now, role, event, actions);
        if (resume) demand(now >= resume->head.roles.server.now_ns, "the clock went back");
        for (const auto& action : actions.list)
            if (const auto* save = std::get_if<Save>(&action)) {
                auto& cut = part.at_save[save->version] = part.ledger;
                Actions before = actions;
                before.gradients.resize(static_cast<std::size_t>(save->rows));
                cut.add(before);
                cut.workers.clear();  // those of a worker that has left are replaced by later ones
            }
        part.ledger.add(actions);
        if (interrupt_after >= 0 && interrupt_after-- == 0) interrupted = true;
    };
    part.report = sim::Run(input, network, placement).go();
    checker.at_end();
    part.started = checker.started;
    return part;
}

inline Ledger joined(Ledger first, const Ledger& second) {
    first.gradients.insert(first.gradients.end(), second.gradients.begin(), second.gradients.end());
    first.updates.insert(first.updates.end(), second.updates.begin(), second.updates.end());
    first.evals.insert(first.evals.end(), second.evals.begin(), second.evals.end());
    first.controller.insert(first.controller.end(), second.controller.begin(), second.controller.end());
    first.rounds.insert(first.rounds.end(), second.rounds.begin(), second.rounds.end());
    first.exchanges.insert(first.exchanges.end(), second.exchanges.begin(), second.exchanges.end());
    first.iterations.insert(first.iterations.end(), second.iterations.begin(), second.iterations.end());
    first.buckets.insert(first.buckets.end(), second.buckets.begin(), second.buckets.end());
    first.workers.insert(first.workers.end(), second.workers.begin(), second.workers.end());
    return first;
}

inline std::optional<trace::Checkpoint> newest(const std::string& directory) {
    return trace::newest_checkpoint(directory, [](const std::string& line) { FAIL(line); });
}

}  // namespace rubato::test
