// Asynchronous local SGD with delayed Nesterov momentum, held against its equations, number by number.
#include "sim/recomputed.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rubato;
using namespace rubato::test;

namespace {

/// The loss of weights w is w * w / 2, the gradient w, and the first weights are 1.
Scenario delayed(int lambda, int tau, int pushes) {
    Scenario scenario = learning_scenario("async-diloco", lambda, 4, "quadratic", 160);
    scenario.model.dimension = 1;
    scenario.data.sampling = Sampling::strided;
    scenario.optimizer.learning_rate = 0.125;
    auto& spec = scenario.protocol.averaging;
    spec.tau = tau;
    spec.outer_learning_rate = 0.7;
    spec.outer_momentum = 0.9;
    spec.delayed.pushes = pushes;
    scenario.stop.updates = 40;
    return scenario;
}

Simulated run(const Scenario& scenario, const NetworkShape& network = {}) {
    const auto task = learn::make_task(scenario);
    auto done = simulate(scenario, task->samples(), network, task.get());
    REQUIRE(done.report.status == Status::finished);
    auto books = scenario;
    books.stop = {};
    REQUIRE_NOTHROW(check_books(books, task->samples(), done.ledger, done.started));
    return done;
}

/// Every version and every loss of the run from who pushed when: numbers are rounded to floats where the run has to.
void check_by_hand(const Scenario& scenario, const Simulated& done) {
    const auto& spec = scenario.protocol.averaging;
    const int pushes = spec.delayed.pushes > 0 ? spec.delayed.pushes : scenario.lambda();
    struct Worker {
        Version pulled = 0;
        std::int64_t steps = 0;  // of the run
    };
    std::vector<Worker> workers(static_cast<std::size_t>(scenario.lambda()));
    std::vector<float> joint{1};
    std::map<std::pair<WorkerId, std::int64_t>, std::pair<double, Version>> expected;
    float b = 0;
    for (const RoundRow& row : done.ledger.rounds) {
        Worker& it = workers[static_cast<std::size_t>(row.worker)];
        float own = joint[static_cast<std::size_t>(it.pulled)];
        const float pulled = own;
        for (std::int64_t k = 0; k < row.steps; ++k) {
            const auto w = static_cast<double>(own);
            expected[{row.worker, it.steps++}] = {0.5 * w * w, it.pulled};
            own -= 0.125f * own;
        }
        const double delta = pulled - own;
        const auto number = static_cast<int>(joint.size());
        const bool first = (number - 1) % pushes == 0, last = number % pushes == 0;
        b = static_cast<float>((first ? spec.outer_momentum : 1) * static_cast<double>(b) + 1.0 / pushes * delta);
        const double eta = spec.outer_learning_rate;
        double next = static_cast<double>(joint.back()) - eta / (spec.delayed.whole ? 1 : pushes) * delta;
        if (last && spec.outer_momentum > 0) next += -eta * spec.outer_momentum * static_cast<double>(b);
        joint.push_back(static_cast<float>(next));
        it.pulled = row.version;
    }
    std::size_t seen = 0;
    for (const auto& row : done.ledger.gradients) {
        if (row.outcome != rubato::Outcome::applied) continue;
        const auto found = expected.find({row.worker, row.worker_seq});
        REQUIRE(found != expected.end());
        CHECK(row.loss == doctest::Approx(found->second.first).epsilon(1e-12));
        CHECK(row.read_version == found->second.second);
        ++seen;
    }
    CHECK(seen == expected.size());
    CHECK(done.report.weights_hash == learn::weights_hash(std::vector<float>{joint.back()}));
}

}  // namespace

TEST_CASE("delayed: every loss and version is the one by hand, whatever the pushes of a step of the momentum") {
    for (const int lambda : {1, 3, 5})
        for (const int pushes : {0, 1, 2, 4})
            for (const bool whole : {false, true}) {
                CAPTURE(lambda);
                CAPTURE(pushes);
                auto scenario = delayed(lambda, 4, pushes);
                scenario.protocol.averaging.delayed.whole = whole;
                if (whole) scenario.protocol.averaging.outer_learning_rate = 0.3;
                const auto done = run(scenario);
                CHECK(done.ledger.rounds.size() == 40);
                check_by_hand(scenario, done);
            }
    auto scenario = delayed(4, 3, 4);
    scenario.protocol.averaging.outer_momentum = 0;
    check_by_hand(scenario, run(scenario));
}

TEST_CASE("delayed: one worker with plain Nesterov is diloco, but for rounding") {
    auto scenario = delayed(1, 6, 1);
    scenario.optimizer.name = "adam";
    scenario.optimizer.learning_rate = 0.01;
    const auto mine = run(scenario);
    scenario.protocol.name = "diloco";
    const auto other = run(scenario);
    REQUIRE(mine.ledger.gradients.size() >= 240);
    std::map<std::int64_t, double> losses;
    for (const auto& row : other.ledger.gradients) losses[row.worker_seq] = row.loss;
    for (const auto& row : mine.ledger.gradients)
        if (row.outcome == rubato::Outcome::applied)
            CHECK(row.loss == doctest::Approx(losses.at(row.worker_seq)).epsilon(1e-4));
}

TEST_CASE("delayed: staleness is lambda - 1 where workers are alike, and no worker waits for another") {
    auto scenario = timing_scenario("async-diloco", 6, 4, 0.01);
    scenario.data.sampling = Sampling::random;
    scenario.protocol.averaging.tau = 5;
    scenario.stop.updates = 300;
    const auto done = simulate(scenario, 1000, {1e-4, 1e9, 0, 0});
    double sum = 0;
    for (const auto& row : done.ledger.updates) sum += row.mean_staleness;
    CHECK(sum / 300 == doctest::Approx(5).epsilon(0.05));
    for (const auto& row : done.ledger.workers) CHECK(row.policy_wait_ns == 0);
    // A push and a pull of a kilobyte, beside 20 ms of steps.
    for (const auto& row : done.ledger.rounds)
        if (row.round > 6)
            CHECK(static_cast<double>(row.broadcast_end_ns - row.broadcast_begin_ns) * 1e-9 ==
                  doctest::Approx(1e-4 + 1e-6).epsilon(0.01));
}

TEST_CASE("delayed: dynamic local updates follow the speeds that workers have told of") {
    // Three of 1 ms a sample, one of 4 ms, one of 20 ms.
    auto scenario = delayed(5, 8, 0);
    scenario.stop.updates = 150;
    scenario.cluster.noise.cv = 0;
    scenario.workers.groups = {{3, "default", 0}, {1, "slow", 0}, {1, "snail", 0}};
    scenario.cluster.devices["slow"] = scenario.cluster.devices["snail"] = scenario.cluster.devices["default"];
    scenario.cluster.devices["slow"].b = 4e-3;
    scenario.cluster.devices["snail"].b = 20e-3;
    for (const bool dylu : {false, true}) {
        scenario.protocol.averaging.delayed.dylu = dylu;
        const auto done = run(scenario);
        check_by_hand(scenario, done);
        std::map<WorkerId, std::vector<std::int64_t>> steps;
        for (const RoundRow& row : done.ledger.rounds) steps[row.worker].push_back(row.steps);
        for (const WorkerId worker : {0, 1, 2})
            for (const auto taken : steps[worker]) CHECK(taken == 8);
        // At first nobody knows how fast it is.
        REQUIRE(steps[3].size() >= 2);
        for (std::size_t i = 0; i < steps[3].size(); ++i) CHECK(steps[3][i] == (dylu && i > 0 ? 2 : 8));
        for (std::size_t i = 0; i < steps[4].size(); ++i) CHECK(steps[4][i] == (dylu && i > 0 ? 1 : 8));
        if (dylu) CHECK(steps[4].size() >= 2);
    }
}

TEST_CASE("delayed: runs are computed again from their logs, as they are and as hosts would merge them") {
    auto scenario = delayed(5, 3, 2);
    scenario.model.name = "mlp";
    scenario.optimizer.name = "adam";
    scenario.optimizer.learning_rate = 0.01;
    scenario.evaluate.every_epochs = 0.5;
    scenario.protocol.averaging.delayed.dylu = true;
    const auto whole = record(scenario);
    REQUIRE(whole.report.status == Status::finished);
    const auto renamed = Renamed()(whole.steps);
    check_recomputed(whole, renamed);
    for (std::uint64_t seed = 0; seed < 8; ++seed) check_recomputed(whole, merged_anyhow(renamed, seed));
    for (const std::int64_t after : {30, 77, 150}) {
        const auto part = record(scenario, after);
        REQUIRE(part.report.status == Status::interrupted);
        check_recomputed(part, part.steps);
    }
}
