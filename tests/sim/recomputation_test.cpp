// Recorded steps, computed again: the weights and losses of the run, whatever the buffers are called and however the
// logs of its hosts were merged.
#include "sim/replay/verification.hpp"
#include "support/random.hpp"
#include "support/simulate.hpp"

#include <doctest/doctest.h>

#include <deque>

using namespace rubato;
using namespace rubato::test;

namespace {

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

Recorded record(const std::string& protocol, int lambda, std::int64_t interrupt_after = -1, int fails_after = -1) {
    Recorded run;
    run.scenario = learning_scenario(protocol, lambda, 8);
    run.scenario.protocol.n = 2;
    run.scenario.optimizer.name = "momentum";
    run.scenario.optimizer.momentum = 0.9;
    run.scenario.stop.epochs = 3;
    run.scenario.evaluate.every_epochs = 0.5;
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

struct Recomputed {
    std::optional<std::uint64_t> hash;
    std::string loss_difference, evaluation_difference;
    std::int64_t gradients = 0, outstanding = 0;
};

Recomputed recompute(const Recorded& run, const std::vector<Logged>& steps, int threads = 2) {
    sim::Verification verification;
    sim::Recomputation recomputation(run.scenario, *run.task, {threads, true}, verification);
    for (const auto& step : steps) recomputation.take(step.now, step.role, step.event, step.actions);
    recomputation.end();
    return {recomputation.weights_hash(), verification.loss_difference(), verification.evaluation_difference(),
            recomputation.gradients(), recomputation.outstanding()};
}

void check_same(const Recorded& run, const Recomputed& outcome) {
    CHECK(outcome.loss_difference == "");
    CHECK(outcome.evaluation_difference == "");
    CHECK(outcome.gradients == run.gradients);
    CHECK(outcome.outstanding == 0);
    REQUIRE(outcome.hash.has_value());
    CHECK(*outcome.hash == *run.report.weights_hash);
}

/// Keeps each role's own order and mixes the roles as it pleases.
std::vector<Logged> merged_anyhow(const std::vector<Logged>& steps, std::uint64_t seed) {
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
        Fields::each(fields, [this](std::string_view, auto& value) {
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
    }
    void rename_ids(Update& it) { id(it.weights); }
    void rename_ids(Evaluate& it) { id(it.weights); }
    void rename_ids(Release& it) { id(it.buffer); }
    template <class Other>
    void rename_ids(Other&) {}

    RoleId role_ = 0;
    std::map<RoleId, std::map<BufferId, BufferId>> names_;
};

}  // namespace

TEST_CASE("recomputation: the weights, losses and evaluations of the run, whatever the number of threads") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"})
        for (const int lambda : {1, 2, 7}) {
            if (std::string_view(protocol) == "n-softsync" && lambda == 1) continue;
            const auto run = record(protocol, lambda);
            REQUIRE(run.report.status == Status::finished);
            CAPTURE(protocol);
            CAPTURE(lambda);
            for (const int threads : {1, 2, 4}) check_same(run, recompute(run, run.steps, threads));
        }
}

TEST_CASE("recomputation: buffers that each role counts for itself, and logs that are merged by bad clocks") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"}) {
        const auto run = record(protocol, 6);
        const auto renamed = Renamed()(run.steps);
        CAPTURE(protocol);
        check_same(run, recompute(run, renamed));
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            CAPTURE(seed);
            check_same(run, recompute(run, merged_anyhow(renamed, seed), 1 + static_cast<int>(seed % 3)));
        }
    }
}

TEST_CASE("recomputation: runs that a signal or a lost peer ended") {
    for (const std::int64_t after : {20, 41, 75}) {
        const auto run = record("n-softsync", 5, after);
        REQUIRE(run.report.status == Status::interrupted);
        check_same(run, recompute(run, run.steps));
        const auto lost = record("async", 5, -1, static_cast<int>(after));
        REQUIRE(lost.report.status == Status::peer_lost);
        const auto outcome = recompute(lost, lost.steps);
        CHECK(outcome.loss_difference == "");
        CHECK(outcome.gradients == lost.gradients);
        CHECK(outcome.hash == lost.report.weights_hash);
    }
}

TEST_CASE("recomputation: what differs is named") {
    auto run = record("async", 4);
    auto steps = run.steps;
    int number = 0;
    for (auto& step : steps)
        if (auto* ready = std::get_if<GradientReady>(&step.event); ready && ++number >= 5)
            ready->loss = std::nextafter(ready->loss, 2.0);
    const auto losses = recompute(run, steps);
    CHECK(losses.loss_difference.starts_with("the loss of gradient "));
    CHECK(losses.hash == run.report.weights_hash);

    steps = run.steps;
    for (auto& step : steps)
        if (auto* evaluated = std::get_if<Evaluated>(&step.event)) evaluated->metrics.test_error = 0.5;
    CHECK(recompute(run, steps).evaluation_difference.starts_with("test_error of version 0 is "));

    run.scenario.optimizer.momentum = 0.8;
    const auto weights = recompute(run, run.steps);
    CHECK(weights.loss_difference != "");
    CHECK(weights.hash != run.report.weights_hash);
}

TEST_CASE("recomputation: a log that contradicts itself is told as such") {
    const auto run = record("async", 3);
    const auto fails = [&](const std::vector<Logged>& steps) -> std::string {
        try {
            recompute(run, steps);
        } catch (const sim::InconsistentLog& problem) {
            return problem.what();
        }
        return "";
    };
    // The last push of a worker is asked for by nobody.
    auto steps = run.steps;
    for (auto it = steps.rbegin(); it != steps.rend(); ++it) {
        auto& list = it->actions.list;
        if (it->role == 0 || list.empty() || !std::holds_alternative<Send>(list.front())) continue;
        if (!std::holds_alternative<Push>(std::get<Send>(list.front()).message)) continue;
        list.erase(list.begin());
        break;
    }
    CHECK(fails(steps).find("nobody sent") != std::string::npos);
    steps = run.steps;
    for (auto& step : steps)
        if (auto* delivered = std::get_if<Delivered>(&step.event))
            if (auto* push = std::get_if<Push>(&delivered->message)) push->worker_seq += 1;
    CHECK(fails(steps).find("another message than worker") != std::string::npos);
    steps = run.steps;
    for (auto& step : steps)
        if (auto* ready = std::get_if<GradientReady>(&step.event)) ready->id += 1000;
    CHECK(fails(steps).find("not under way") != std::string::npos);
    steps = run.steps;
    std::get<Start>(steps.front().event).weights += 1000;
    CHECK(fails(steps).find("never given") != std::string::npos);
}
