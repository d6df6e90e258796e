// The schedule of a recorded run under another update rule is what a run with that rule would have been.
#include "sim/replay/retelling.hpp"
#include "sim/recorded_steps.hpp"
#include "sim/replay/same_schedule.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

struct Retold {
    trace::DriverReport report;
    std::optional<std::uint64_t> hash;
    std::string cells;  ///< figures of all rows
};

/// `steps` as the log of `run`, in the order given.
Retold retell(const Recorded& run, const std::vector<Logged>& steps, const OptimizerSpec& optimizer, bool stop = true) {
    Scenario changed = run.scenario;
    changed.optimizer = optimizer;
    trace::RecorderOptions options;
    options.samples = run.task->samples();
    options.one_thread = true;
    trace::Recorder recorder(changed, options);
    sim::Retelling retelling(make_roles(changed, run.task->samples(), run.task->parameters()), stop, {1000, 1000, 64},
                             recorder, nullptr);
    sim::Recomputation recomputation(changed, *run.task, {2, true}, retelling);
    for (const auto& step : steps) recomputation.take(step.now, step.role, step.event, step.actions);
    recomputation.end();
    Retold result;
    result.hash = recomputation.weights_hash();
    retelling.close(recomputation);
    result.report = retelling.report();
    trace::DriverReport bare = result.report;
    bare.weights_hash = result.hash;
    result.cells = recorder.cells(bare);
    result.cells.resize(result.cells.find(",mlp,"));  // behind it stand figures of the process
    return result;
}

OptimizerSpec other_rule() {
    OptimizerSpec optimizer;
    optimizer.learning_rate = 0.03;
    optimizer.staleness_rule.kind = StalenessRule::Kind::polynomial;
    return optimizer;
}

}  // namespace

TEST_CASE("retelling: the weights of a run with that rule, however the log was merged") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"}) {
        const auto run = record(protocol, 6);
        const auto wanted = record(protocol, 6, -1, -1, other_rule());
        REQUIRE(wanted.report.weights_hash != run.report.weights_hash);
        const auto plain = retell(run, run.steps, other_rule());
        CAPTURE(protocol);
        CHECK(plain.report.status == Status::finished);
        CHECK(plain.hash == wanted.report.weights_hash);
        CHECK(plain.report.messages == wanted.report.messages);
        CHECK(plain.report.control_messages == wanted.report.control_messages);
        CHECK(plain.report.servers.front().pushes == wanted.report.servers.front().pushes);
        CHECK(plain.report.servers.front().updates == wanted.report.servers.front().updates);
        CHECK(plain.report.servers.front().replies == wanted.report.servers.front().replies);
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            const auto merged = retell(run, merged_anyhow(Renamed()(run.steps), seed), other_rule());
            CHECK(merged.hash == plain.hash);
            CHECK(merged.cells == plain.cells);
        }
        CHECK(retell(run, run.steps, run.scenario.optimizer).hash == run.report.weights_hash);
    }
}

TEST_CASE("retelling: a divergence ends it with its books, in any order of the log") {
    const auto run = record("async", 5);
    OptimizerSpec wild = other_rule();
    wild.learning_rate = 1e25;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const auto steps = merged_anyhow(run.steps, seed);
        const auto stopped = retell(run, steps, wild);
        CHECK(stopped.report.status == Status::diverged);
        CHECK(stopped.report.detail.find("is not finite") != std::string::npos);
        CHECK(stopped.report.servers.front().updates < run.report.servers.front().updates);
        const auto whole = retell(run, steps, wild, false);
        CHECK(whole.report.status == Status::diverged);
        CHECK(whole.report.servers.front().updates == run.report.servers.front().updates);
    }
}

TEST_CASE("retelling: only the numbers of the rule may differ") {
    Actions a;
    a.add<Fold>(1, 2, 3, 0.5);
    a.add<Update>(2, 4, 7, 0, 1);
    a.steps.push_back({0, 1, 0.1});
    a.parts.push_back({3, 0.5, 6, 1});
    Push push;
    push.loss = std::numeric_limits<double>::quiet_NaN();
    a.send<Push>(3, 0, Channel::gradient, {5, 0, 9}, push);
    Actions b = a;
    std::get<Fold>(b.list[0]).factor = 0.25;
    b.steps[0].learning_rate = 0.2;
    b.parts[0].factor = 1;
    CHECK(sim::same_schedule(a, b));
    CHECK_NOTHROW(sim::require_same_schedule(5, 0, a, b));
    const auto differs = [&](auto change) {
        Actions c = b;
        change(c);
        CHECK_FALSE(sim::same_schedule(a, c));
        CHECK_THROWS_AS(sim::require_same_schedule(5, 0, a, c), sim::ScheduleChanged);
    };
    differs([](Actions& c) { c.parts[0].read_version = 5; });
    differs([](Actions& c) { c.steps[0].part_count = 2; });
    differs([](Actions& c) { std::get<Update>(c.list[1]).from = 8; });
    differs([](Actions& c) { std::get<Push>(std::get<Send>(c.list[2]).message).worker_seq = 1; });
    differs([](Actions& c) { c.list.pop_back(); });
    differs([](Actions& c) { c.updates.emplace_back(); });
}
