// Averaging of models, held against other protocols, plain recursions and formulas.
#include "sim/recomputed.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rubato;
using namespace rubato::test;

namespace {

Scenario averaging(const std::string& protocol, int lambda, int tau, const std::string& model = "mlp",
                   std::int64_t samples = 128) {
    Scenario scenario = learning_scenario(protocol, lambda, 8, model, samples);
    scenario.data.sampling = Sampling::strided;
    scenario.protocol.averaging.tau = tau;
    scenario.stop.epochs = 3;
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

std::map<std::pair<WorkerId, std::int64_t>, double> losses(const Simulated& done) {
    std::map<std::pair<WorkerId, std::int64_t>, double> all;
    for (const auto& row : done.ledger.gradients) all[{row.worker, row.worker_seq}] = row.loss;
    return all;
}

void check_close(const Simulated& a, const Simulated& b) {
    const auto mine = losses(a), others = losses(b);
    REQUIRE(mine.size() == others.size());
    for (const auto& [key, loss] : mine) {
        REQUIRE(others.count(key) == 1);
        CHECK(loss == doctest::Approx(others.at(key)).epsilon(1e-5));
    }
    REQUIRE(!a.ledger.evals.empty());
    REQUIRE(!b.ledger.evals.empty());
    CHECK(*a.ledger.evals.back().metrics.test_loss ==
          doctest::Approx(*b.ledger.evals.back().metrics.test_loss).epsilon(1e-5));
}

}  // namespace

TEST_CASE("averaging: sparknet of one plain step has the weights of hardsync, exchanging models or gradients") {
    for (const int lambda : {1, 2, 4, 8}) {
        CAPTURE(lambda);
        auto hardsync = averaging("hardsync", lambda, 1);
        const auto expected = run(hardsync);
        auto scenario = averaging("sparknet", lambda, 1);
        check_close(run(scenario), expected);
        scenario.protocol.averaging.gradients = true;
        check_close(run(scenario), expected);
        // What the driver's optimizer does with the mean gradient, it does with it elsewhere.
        hardsync.optimizer = scenario.optimizer = momentum();
        check_close(run(scenario), run(hardsync));
    }
}

TEST_CASE("averaging: one worker follows the plain optimizer, whose state lasts from round to round") {
    for (const char* name : {"sgd", "momentum", "nesterov", "adagrad", "adam"}) {
        CAPTURE(name);
        auto plain = averaging("hardsync", 1, 1);
        plain.optimizer.name = name;
        plain.optimizer.momentum = 0.9;
        plain.optimizer.weight_decay = 0.01;
        plain.optimizer.decoupled_weight_decay = true;
        const auto expected = run(plain).report.weights_hash;
        for (const int tau : {1, 3, 48}) {
            auto scenario = averaging("sparknet", 1, tau);
            scenario.optimizer = plain.optimizer;
            CHECK(run(scenario).report.weights_hash == expected);
        }
    }
}

TEST_CASE("averaging: an outer step of rate 1 without momentum is the mean, bit for bit") {
    auto scenario = averaging("sparknet", 5, 3);
    scenario.optimizer = momentum();
    const auto expected = run(scenario).report.weights_hash;
    scenario.protocol.name = "local-sgd";
    CHECK(run(scenario).report.weights_hash == expected);
    scenario.protocol.averaging.outer_learning_rate = 0.5;
    CHECK(run(scenario).report.weights_hash != expected);
}

TEST_CASE("averaging: the outer step of diloco is the recursion by hand") {
    // Gradients of 0.5, so that tau steps of rate r move every worker by 0.5 * tau * r; the loss of weights w is w / 2.
    auto scenario = averaging("diloco", 3, 4, "constant", 96);
    scenario.model.value = 0.5;
    scenario.model.dimension = 1;
    scenario.optimizer.learning_rate = 0.125;
    scenario.protocol.averaging.outer_learning_rate = 0.7;
    scenario.protocol.averaging.outer_momentum = 0.9;
    scenario.stop = {};
    scenario.stop.updates = 6;
    const auto done = run(scenario);
    double theta = 0, b = 0;
    std::map<Version, double> joint{{0, 0}};
    for (Version version = 1; version <= 6; ++version) {
        const double delta = 4 * 0.125 * 0.5;
        b = 0.9 * b + delta;
        theta -= 0.7 * (delta + 0.9 * b);
        joint[version] = theta;
    }
    REQUIRE(done.ledger.gradients.size() == 6 * 4 * 3);
    for (const auto& row : done.ledger.gradients) {
        const double w = joint[row.read_version] - 0.125 * 0.5 * static_cast<double>(row.worker_seq % 4);
        CHECK(row.loss == doctest::Approx(0.5 * w).epsilon(1e-6));
    }
}

TEST_CASE(
    "averaging: a round takes tau steps, a reduce of ceil(log2 K) + 1 hops and a broadcast of ceil(log2 (K + 1))") {
    for (const int lambda : {1, 2, 3, 4, 7, 8, 16}) {
        CAPTURE(lambda);
        const int tau = 5;
        auto scenario = timing_scenario("sparknet", lambda, 4, 0);
        scenario.data.sampling = Sampling::random;
        scenario.protocol.averaging.tau = tau;
        scenario.cost.push_bytes = scenario.cost.pull_bytes = 1'000'000;
        scenario.cluster.server.update_s = 1e-3;
        scenario.stop.updates = 40;
        const double hop = 1e-4 + 1e6 / 1e9, c = 4e-3;
        const auto done = simulate(scenario, 1000, {1e-4, 1e9, 0, 0});
        const double reduce = (std::ceil(std::log2(lambda)) + 1) * hop;
        const double broadcast = std::ceil(std::log2(lambda + 1)) * hop;
        const double m = reduce + 1e-3 + broadcast;
        REQUIRE(done.ledger.rounds.size() == 40);
        for (std::size_t i = 1; i < 40; ++i) {
            const RoundRow& row = done.ledger.rounds[i];
            const auto seconds = [](Time from, Time to) { return static_cast<double>(to - from) * 1e-9; };
            // Who had the model early is done early, and adds what is there while others still compute.
            CHECK(seconds(row.compute_end_ns, row.reduce_end_ns) <= reduce * 1.001);
            CHECK(seconds(row.compute_end_ns, row.reduce_end_ns) >= hop * 0.999);
            CHECK(seconds(row.broadcast_begin_ns, row.broadcast_end_ns) == doctest::Approx(broadcast).epsilon(1e-3));
            CHECK(seconds(done.ledger.rounds[i - 1].prepare_end_ns, row.prepare_end_ns) ==
                  doctest::Approx(tau * c + m).epsilon(0.02));
        }
        // Of what is left of the first worker's time, nothing is waiting for others.
        for (const auto& row : done.ledger.workers) {
            const double part = static_cast<double>(row.compute_ns) /
                                static_cast<double>(row.sum_ns() - row.idle_ns - row.policy_wait_ns);
            CHECK(part == doctest::Approx(tau * c / (tau * c + m)).epsilon(0.03));
        }
    }
}

TEST_CASE("averaging: runs are computed again from their logs, as they are and as hosts would merge them") {
    for (const char* protocol : {"sparknet", "diloco"}) {
        auto scenario = averaging(protocol, 6, 3);
        scenario.optimizer = momentum();
        scenario.optimizer.name = "adam";
        scenario.evaluate.every_epochs = 0.5;
        if (scenario.protocol.name == "diloco") scenario.protocol.averaging = {3, false, 0.7, 0.9, 0, {}, {}};
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
    auto scenario = averaging("sparknet", 5, 1);
    scenario.protocol.averaging.gradients = true;
    scenario.optimizer = momentum();
    const auto whole = record(scenario);
    check_recomputed(whole, Renamed()(whole.steps));
}

TEST_CASE("averaging: elastic moves are those by hand, and what worker and server move by is one buffer") {
    // One worker, gradients of 0.5: tau steps of rate r lead it down by 0.5 * tau * r; then both ends move by d. The
    // loss of weights w is w / 2.
    auto scenario = averaging("easgd", 1, 4, "constant", 96);
    scenario.model.value = 0.5;
    scenario.model.dimension = 1;
    scenario.optimizer.learning_rate = 0.125;
    scenario.protocol.averaging.alpha = 0.3;
    scenario.stop = {};
    scenario.stop.updates = 8;
    const auto done = run(scenario);
    float own = 0, joint = 0;
    for (const auto& row : done.ledger.gradients) {
        if (row.outcome != rubato::Outcome::applied) continue;
        CHECK(row.loss == doctest::Approx(0.5 * static_cast<double>(own)).epsilon(1e-6));
        own -= 0.125f * 0.5f;
        if (row.worker_seq % 4 != 3) continue;
        const auto d = static_cast<float>(0.3 * static_cast<double>(own) - 0.3 * static_cast<double>(joint));
        own -= d;
        joint += d;
    }
    REQUIRE(!done.ledger.evals.empty());
    const auto weights = std::vector<float>{joint};
    CHECK(done.report.weights_hash == learn::weights_hash(weights));
}

TEST_CASE("averaging: an elastic worker stops for the download and its move alone") {
    auto scenario = timing_scenario("easgd", 1, 4, 0);
    scenario.data.sampling = Sampling::random;
    scenario.protocol.averaging.tau = 5;
    scenario.cost.push_bytes = 15'000'000;  // an upload of 15 ms beside 20 ms of steps
    scenario.cost.pull_bytes = 1'000'000;
    scenario.stop.updates = 50;
    const auto done = simulate(scenario, 1000, {1e-4, 1e9, 0, 0});
    REQUIRE(done.ledger.rounds.size() == 50);
    for (std::size_t i = 1; i < 50; ++i) {
        const Time period = done.ledger.rounds[i].compute_begin_ns - done.ledger.rounds[i - 1].compute_begin_ns;
        CHECK(static_cast<double>(period) * 1e-9 == doctest::Approx(0.020 + 0.0011 + 1e-4).epsilon(0.01));
    }
}

TEST_CASE("averaging: elastic runs are computed again from their logs") {
    auto scenario = averaging("easgd", 5, 3);
    scenario.optimizer = momentum();
    scenario.protocol.averaging.alpha = 0.18;
    const auto whole = record(scenario);
    REQUIRE(whole.report.status == Status::finished);
    const auto renamed = Renamed()(whole.steps);
    check_recomputed(whole, renamed);
    for (std::uint64_t seed = 0; seed < 8; ++seed) check_recomputed(whole, merged_anyhow(renamed, seed));
    for (const std::int64_t after : {30, 77, 150})
        check_recomputed(record(scenario, after), record(scenario, after).steps);
}
