// Workers that crash and return where models are averaged: who is left keeps its model, means are of those who are
// there, and such runs are computed again from their logs.
#include "sim/recomputed.hpp"

#include <doctest/doctest.h>
#include <cmath>
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
    if (protocol == "streaming-diloco") {
        scenario.protocol.averaging.tau = 6;
        scenario.protocol.averaging.stream = {2, 1, 0.5};
        scenario.protocol.averaging.phases.shards = 2;
    }
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

TEST_CASE("rounds, fragments: a lost worker's steps are in no mean that it is not in, and it is back with the next") {
    for (const char* protocol : {"sparknet", "streaming-diloco"}) {
        INFO(protocol);
        const auto done = run(crashing(protocol, false, 0.02, 0.06));
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
}

TEST_CASE("streaming-diloco: a worker that is back goes on from the joint model, all of it") {
    // Where fragments are taken over whole, all workers have one model after each has been merged.
    auto scenario = crashing("streaming-diloco", false, 0.02, 0.06);
    scenario.protocol.averaging.stream = {2, 0, 0};
    scenario.workers.groups.front().count = 2;
    scenario.faults.front().workers = {0};
    const auto task = learn::make_task(scenario);
    std::vector<std::int64_t> whole;
    const auto done = simulate(scenario, task->samples(), {}, task.get(), -1,
                               [&](Time, RoleId role, const Event& event, const Actions&) {
                                   const auto* it = std::get_if<Delivered>(&event);
                                   if (it == nullptr || role != 1) return;
                                   const auto* model = std::get_if<Model>(&it->message);
                                   if (model != nullptr && model->number == Model::whole)
                                       whole.push_back(it->payload.count);
                               });
    REQUIRE(done.report.status == Status::finished);
    CHECK(whole == std::vector<std::int64_t>{task->parameters()});
    // Steps in one version are counted alike for the one that is back.
    std::map<Version, std::map<WorkerId, int>> steps;
    for (const auto& row : done.ledger.gradients)
        if (row.outcome == Outcome::applied) ++steps[row.apply_version][row.worker];
    int both = 0;
    for (const auto& [version, by_worker] : steps) {
        for (const auto& [worker, count] : by_worker) CHECK(count == 3);
        both += by_worker.size() == 2;
    }
    CHECK(both > 4);
}

namespace {

/// One dimension, gradients that are the weights: a step takes an eighth of them.
Scenario gossip(int lambda) {
    auto scenario = crashing("gosgd", false, 0, 0);
    scenario.model.name = "quadratic";
    scenario.model.dimension = 1;
    scenario.optimizer.learning_rate = 0.125;
    scenario.workers.groups.front().count = lambda;
    scenario.evaluate.every_epochs = 0.25;
    return scenario;
}

void add_spell(Scenario& scenario, WorkerId worker, double at_s, double until_s) {
    FaultSpec& fault = scenario.faults.emplace_back();
    fault.workers = {worker};
    fault.at_s = at_s;
    if (until_s > 0) fault.until_s = until_s;
}

}  // namespace

TEST_CASE("gossip: one that is back waits for a model, and goes on from that; means are of those who are there") {
    auto scenario = gossip(2);
    add_spell(scenario, 1, 0.03, 0.15);
    double handed = -1, begins = -1;  // whose model it is, by its loss; its own first loss
    std::map<RoleId, double> x{{1, 1.0}, {2, 1.0}};
    bool back = false;
    const auto task = learn::make_task(scenario);
    const auto done =
        simulate(scenario, task->samples(), {}, task.get(), -1,
                 [&](Time, RoleId role, const Event& event, const Actions& actions) {
                     if (const auto* it = std::get_if<GradientReady>(&event)) {
                         x[role] = std::sqrt(2 * it->loss);
                         if (back && role == 2 && begins < 0) begins = x[role];
                     }
                     back = back || std::holds_alternative<Restarted>(event);
                     for (const auto& action : actions.list)
                         if (const auto* send = std::get_if<Send>(&action))
                             if (back && handed < 0 && send->to == 2 && std::holds_alternative<Gossip>(send->message))
                                 handed = x[role] * 0.875;
                 });
    REQUIRE(done.report.status == Status::finished);
    REQUIRE(handed > 0);
    CHECK(begins == doctest::Approx(handed).epsilon(1e-6));
    std::set<int> workers;
    for (const auto& row : done.ledger.rounds) workers.insert(row.workers);
    CHECK(workers == std::set<int>{1, 2});
    CHECK(done.ledger.rounds.back().workers == 2);
}

TEST_CASE("gossip: where nobody is left, the first one that is back goes on from the last mean") {
    auto scenario = gossip(3);
    for (const WorkerId worker : {0, 1, 2}) add_spell(scenario, worker, 0.1, 0.15 + 0.05 * worker);
    double begins = -1;
    const auto task = learn::make_task(scenario);
    const auto done = simulate(scenario, task->samples(), {}, task.get(), -1,
                               [&](Time now, RoleId role, const Event& event, const Actions&) {
                                   const auto* it = std::get_if<GradientReady>(&event);
                                   if (it == nullptr || now < 100'000'000 || begins >= 0) return;
                                   CHECK(role == 1);
                                   begins = it->loss;
                               });
    REQUIRE(done.report.status == Status::finished);
    double mean = -1;
    for (const auto& row : done.ledger.evals)
        if (row.time_ns < 100'000'000) mean = *row.metrics.suboptimality;
    REQUIRE(mean > 0);
    CHECK(mean < 0.4);
    CHECK(begins == doctest::Approx(mean).epsilon(1e-6));
    CHECK(done.ledger.rounds.back().workers == 3);
}

TEST_CASE("runs whose workers crash and return are computed again from their logs") {
    for (const char* protocol : {"sparknet", "diloco", "streaming-diloco", "mpca", "easgd", "async-diloco", "gosgd"}) {
        for (const bool swarm : {false, true}) {
            if (swarm && (std::string(protocol) == "streaming-diloco" || std::string(protocol) == "gosgd")) continue;
            for (const double at_s : {0.0101, 0.017, 0.0333}) {
                const auto whole = record(crashing(protocol, swarm, at_s, at_s + 0.03));
                INFO(protocol, " ", at_s, " ", swarm);
                REQUIRE(whole.report.status == Status::finished);
                check_recomputed(whole, whole.steps);
            }
        }
    }
}
