// Steps of small simulated runs, kept as a log keeps them, and what becomes of logs elsewhere.
#pragma once

#include "support/random.hpp"
#include "support/simulate.hpp"

#include <deque>
#include <map>
#include <memory>

namespace rubato::test {

struct Logged {
    Time now = 0;
    RoleId role = 0;
    Event event;
    Actions actions;
};

struct Recorded {
    Scenario scenario;
    std::unique_ptr<learn::Task> task;
    std::vector<Logged> steps;
    trace::DriverReport report;
    std::int64_t gradients = 0;  ///< computed to the end
};

inline OptimizerSpec momentum() {
    OptimizerSpec optimizer;
    optimizer.name = "momentum";
    optimizer.momentum = 0.9;
    optimizer.learning_rate = 0.05;
    return optimizer;
}

/// interrupt_after: steps until a signal comes; fails_after: transfers until one fails; -1: never.
inline Recorded record(Scenario scenario, std::int64_t interrupt_after = -1, int fails_after = -1) {
    Recorded run;
    run.scenario = std::move(scenario);
    run.task = learn::make_task(run.scenario);
    IdealNetwork network(sim::star_hosts(run.scenario), 1e-5, 1e6, 0.5, 3);
    network.fails_after = fails_after;
    const auto placement = sim::place(run.scenario, network.hosts());
    std::atomic<bool> interrupted{false};
    sim::RunInput input;
    input.scenario = &run.scenario;
    input.task = run.task.get();
    input.samples = run.task->samples();
    input.parameters = run.task->parameters();
    input.interrupted = &interrupted;
    input.observer = [&](Time now, RoleId role, const Event& event, const Actions& actions) {
        run.steps.push_back({now, role, event, actions});
        run.gradients += std::holds_alternative<GradientReady>(event);
        if (interrupt_after >= 0 && interrupt_after-- == 0) interrupted = true;
    };
    run.report = sim::Run(input, network, placement).go();
    return run;
}

inline Recorded record(const std::string& protocol, int lambda, std::int64_t interrupt_after = -1, int fails_after = -1,
                       const OptimizerSpec& optimizer = momentum(), const CommunicationSpec& communication = {},
                       const TreeSpec* tree = nullptr, const ShardsSpec* shards = nullptr, bool downcast = false) {
    Scenario scenario = learning_scenario(protocol, lambda, 8);
    scenario.protocol.n = 2;
    scenario.workers.communication = communication;
    scenario.optimizer = optimizer;
    if (tree != nullptr) {
        scenario.topology = downcast ? "tree-downcast" : "tree";
        scenario.tree = *tree;
    }
    if (downcast) {
        scenario.workers.pipeline = Pipeline::overlap;
        scenario.workers.pull = Pull::latest;
        scenario.data.sampling = Sampling::strided;
    }
    if (shards != nullptr) {
        scenario.topology = "sharded";
        scenario.shards = *shards;
        scenario.layers = learn::task_size(scenario).layers;
    }
    scenario.stop.epochs = 3;
    scenario.evaluate.every_epochs = 0.5;
    return record(std::move(scenario), interrupt_after, fails_after);
}

/// Keeps each role's own order and mixes the roles as it pleases.
inline std::vector<Logged> merged_anyhow(const std::vector<Logged>& steps, std::uint64_t seed) {
    std::map<RoleId, std::deque<Logged>> by_role;
    for (const auto& step : steps) by_role[step.role].push_back(step);
    std::vector<Logged> out;
    Random random(seed);
    while (!by_role.empty()) {
        auto it = by_role.begin();
        std::advance(it, random.below(by_role.size()));
        for (auto some = 1 + random.below(30); some > 0 && !it->second.empty(); --some) {
            out.push_back(it->second.front());
            it->second.pop_front();
        }
        if (it->second.empty()) by_role.erase(it);
    }
    return out;
}

/// As where every role is a process: each counts its own buffers, and all begin at 0.
class Renamed {
public:
    std::vector<Logged> operator()(std::vector<Logged> steps) {
        for (auto& step : steps) {
            role_ = step.role;
            std::visit([this](auto& event) { rename(event); }, step.event);
            for (auto& action : step.actions.list) std::visit([this](auto& it) { rename(it); }, action);
            for (auto& part : step.actions.parts) id(part.gradient);
        }
        return steps;
    }

private:
    void id(BufferId& buffer) {
        if (buffer == no_buffer) return;
        auto& names = names_[role_];
        buffer = names.emplace(buffer, static_cast<BufferId>(names.size())).first->second;
    }
    template <class Fields>
    void rename(Fields& fields) {
        Fields::each(fields, [this](std::string_view, auto&& value) {
            using Value = std::remove_reference_t<decltype(value)>;
            if constexpr (std::is_same_v<Value, Slice>) id(value.buffer);
        });
        rename_ids(fields);
    }
    // A buffer's id is an integer like others: those that are buffers are named here.
    void rename_ids(Start& it) { id(it.weights); }
    void rename_ids(GradientReady& it) { id(it.gradient); }
    void rename_ids(Folded& it) { id(it.accumulator); }
    void rename_ids(Applied& it) { id(it.weights); }
    void rename_ids(Compute& it) { id(it.weights); }
    void rename_ids(Fold& it) {
        id(it.accumulator);
        id(it.gradient);
        id(it.weights);
    }
    void rename_ids(Keep& it) { id(it.weights); }
    void rename_ids(LocalStep& it) {
        for (BufferId* buffer : {&it.weights, &it.local, &it.gradient, &it.sum}) id(*buffer);
    }
    void rename_ids(Stepped& it) {
        id(it.local);
        id(it.sum);
    }
    void rename_ids(Update& it) { id(it.weights); }
    void rename_ids(Place& it) {
        id(it.weights);
        id(it.whole);
    }
    void rename_ids(Placed& it) { id(it.weights); }
    void rename_ids(Mix& it) {
        id(it.out);
        for (std::int32_t i = 0; i < it.term_count; ++i) id(it.terms[i].buffer);
    }
    void rename_ids(Mixed& it) { id(it.out); }
    void rename_ids(SumAll& it) { id(it.sum); }
    void rename_ids(Summed& it) { id(it.sum); }
    void rename_ids(Evaluate& it) { id(it.weights); }
    void rename_ids(Release& it) { id(it.buffer); }
    template <class Other>
    void rename_ids(Other&) {}

    RoleId role_ = 0;
    std::map<RoleId, std::map<BufferId, BufferId>> names_;
};

}  // namespace rubato::test
