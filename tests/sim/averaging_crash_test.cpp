// Workers that crash and return where models are averaged: who is left keeps its model, means are of those who are
// there, and such runs are computed again from their logs.
#include "sim/recomputed.hpp"

#include <doctest/doctest.h>
#include <map>
#include <set>

using namespace rubato;
using namespace rubato::test;

namespace {

Scenario crashing(const std::string& protocol, bool swarm, double at_s, double until_s) {
    Scenario scenario = learning_scenario(protocol, 4, 8, "mlp", 256);
    scenario.data.sampling = Sampling::strided;
    scenario.protocol.averaging.tau = 3;
    scenario.protocol.averaging.spread = {swarm, 5};
    scenario.protocol.averaging.phases.by_layers = false;
    scenario.protocol.averaging.delayed.pushes = 3;
    scenario.stop.epochs = 4;
    if (at_s > 0) {
        FaultSpec& fault = scenario.faults.emplace_back();
        fault.workers = {1};
        fault.at_s = at_s;
        if (until_s > 0) fault.until_s = until_s;
    }
    return scenario;
}

Simulated run(const Scenario& scenario) {
    const auto task = learn::make_task(scenario);
    auto done = simulate(scenario, task->samples(), {}, task.get());
    REQUIRE(done.report.status == Status::finished);
    auto books = scenario;
    books.stop = {};
    REQUIRE_NOTHROW(check_books(books, task->samples(), done.ledger, done.started));
    return done;
}

}  // namespace

TEST_CASE("mpca: the models of those who are left are as they were (INV-M13)") {
    // Without a pull a worker's model is its own alone, so its losses tell whether anybody touched it.
    const auto losses = [](const Simulated& done, WorkerId worker) {
        std::map<std::int64_t, double> out;
        for (const auto& row : done.ledger.gradients)
            if (row.worker == worker && row.end_ns >= 0) out[row.worker_seq] = row.loss;
        return out;
    };
    const auto whole = run(crashing("mpca", false, 0, 0));
    for (const double at_s : {0.011, 0.023, 0.05}) {
        const auto crashed = run(crashing("mpca", false, at_s, 0));
        for (const WorkerId worker : {0, 2, 3}) {
            const auto mine = losses(crashed, worker), before = losses(whole, worker);
            REQUIRE(mine.size() > before.size());  // they do what the lost one would have done
            for (const auto& [seq, loss] : before) CHECK(mine.at(seq) == loss);
        }
        CHECK(crashed.ledger.rounds.back().workers == 3);
    }
}

TEST_CASE("rounds: a lost worker's steps are in no mean that it is not in, and it is back with the next round") {
    const auto done = run(crashing("sparknet", false, 0.02, 0.06));
    std::set<int> workers;
    std::map<Version, std::set<WorkerId>> in_round;
    for (const auto& row : done.ledger.rounds) workers.insert(row.workers);
    for (const auto& row : done.ledger.gradients)
        if (row.outcome == Outcome::applied) in_round[row.apply_version + 1].insert(row.worker);
    CHECK(workers == std::set<int>{3, 4});
    for (const auto& row : done.ledger.rounds)
        CHECK(in_round[row.version].size() == static_cast<std::size_t>(row.workers));
    CHECK(done.ledger.rounds.back().workers == 4);
}

TEST_CASE("runs whose workers crash and return are computed again from their logs") {
    for (const char* protocol : {"sparknet", "diloco", "mpca", "easgd", "async-diloco"}) {
        for (const bool swarm : {false, true}) {
            for (const double at_s : {0.0101, 0.017, 0.0333}) {
                const auto whole = record(crashing(protocol, swarm, at_s, at_s + 0.03));
                INFO(protocol, " ", at_s, " ", swarm);
                REQUIRE(whole.report.status == Status::finished);
                check_recomputed(whole, whole.steps);
            }
        }
    }
}
