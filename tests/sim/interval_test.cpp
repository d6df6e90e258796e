// Communication interval and devices of a worker, held against plain loops and sums by hand.
#include "sim/noise.hpp"
#include "sim/recomputed.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

Simulated run(const Scenario& scenario, const learn::Task& task) {
    auto done = simulate(scenario, task.samples(), {}, &task);
    REQUIRE(done.report.status == Status::finished);
    REQUIRE_NOTHROW(check_books(scenario, task.samples(), done.ledger, done.started));
    return done;
}

Scenario with_interval(Scenario scenario, int push_every, int pull_every, std::optional<double> rate = {}) {
    scenario.workers.communication = {push_every, pull_every, rate};
    return scenario;
}

}  // namespace

TEST_CASE("interval: constant gradients add up exactly, and each is computed where a worker's own steps led") {
    // Gradients of 0.5; the loss of weights w (of one element) is w / 2. Four to a push, of 8 samples; 84 an epoch: a
    // round of two pushes, and one of a push with gradients of 8, 8 and 4 samples.
    auto scenario = learning_scenario("hardsync", 2, 8, "constant", 84);
    scenario.model.value = 0.5;
    scenario.model.dimension = 1;
    scenario.optimizer.learning_rate = 1;
    scenario.stop.epochs = 3;
    const double rate = 0.125;
    const auto task = learn::make_task(scenario);
    const auto done = run(with_interval(scenario, 4, 1, rate), *task);
    REQUIRE(done.ledger.updates.size() == 6);
    for (const auto& update : done.ledger.updates) {
        const bool whole = update.version % 2 == 1;
        CHECK(update.contributors == (whole ? 8 : 3));
        CHECK(update.samples == (whole ? 64 : 20));
    }
    REQUIRE(done.ledger.gradients.size() == 9);
    for (const auto& row : done.ledger.gradients) {
        const double weights = -0.5 * static_cast<double>(row.read_version);  // a step of the mean gradient each
        const double steps = row.count == 4 ? (0 + 1 + 2 + 3) / 4.0 : (0 * 8 + 1 * 8 + 2 * 4) / 20.0;
        CHECK(row.loss == doctest::Approx(0.5 * (weights - steps * rate * 0.5)).epsilon(1e-6));
    }
    // Sums of eight have exact bits.
    scenario.stop = {};
    scenario.stop.updates = 1;
    const float once = -0.5f;
    CHECK(*run(with_interval(scenario, 4, 1), *task).report.weights_hash == learn::weights_hash({&once, 1}));
}

TEST_CASE("interval: a worker's own steps and pulls are those of a plain loop, bit for bit") {
    for (const auto& [push_every, pull_every] : {std::pair{1, 2}, {1, 5}, {2, 1}, {4, 1}, {2, 3}, {3, 2}}) {
        CAPTURE(push_every);
        CAPTURE(pull_every);
        auto scenario = learning_scenario("async", 1, 1, "quadratic", 1000);
        const float rate = 0.25f, own = 0.125f;
        scenario.optimizer.learning_rate = rate;
        constexpr int updates = 30;
        scenario.stop.updates = updates;
        float weights = 1, local = 1;
        for (int k = 0; k < updates; ++k) {
            if (k % pull_every == 0) local = weights;
            float sum = 0;
            for (int i = 0; i < push_every; ++i) {
                sum = i == 0 ? local : sum + local;  // the gradient of w^2 / 2
                local = local - own * local;
            }
            const float mean = push_every == 1 ? sum : static_cast<float>(1.0 / push_every) * sum;
            weights = weights - rate * mean;
        }
        const auto task = learn::make_task(scenario);
        const auto done = run(with_interval(scenario, push_every, pull_every, 0.125), *task);
        CHECK(*done.report.weights_hash == learn::weights_hash({&weights, 1}));
        for (const auto& row : done.ledger.gradients)
            if (row.outcome == Outcome::applied) {
                CHECK(row.read_version == row.apply_version / pull_every * pull_every);
                CHECK(row.worker_seq == row.apply_version * push_every);
            }
    }
}

TEST_CASE("interval: sums without steps of a worker's own are the gradients of larger batches") {
    for (const char* protocol : {"hardsync", "async", "n-softsync"})
        for (const int lambda : {1, 3}) {
            if (lambda == 1 && protocol[0] == 'n') continue;
            CAPTURE(protocol);
            CAPTURE(lambda);
            auto scenario = learning_scenario(protocol, lambda, 32, "mlp", 301);
            scenario.cluster.noise.cv = 0;  // four gradients take as long as one of four times the samples
            scenario.protocol.n = 2;
            scenario.optimizer.name = "momentum";
            scenario.optimizer.momentum = 0.5;
            scenario.stop.epochs = 3;
            const auto task = learn::make_task(scenario);
            const auto large = run(scenario, *task);
            scenario.workers.batch_size = 8;
            const auto sums = run(with_interval(scenario, 4, 1, 0.0), *task);
            REQUIRE(sums.ledger.gradients.size() == large.ledger.gradients.size());
            for (std::size_t k = 0; k < sums.ledger.gradients.size(); ++k) {
                const auto &sum = sums.ledger.gradients[k], &one = large.ledger.gradients[k];
                CHECK(sum.batch == one.batch);
                CHECK(sum.read_version == one.read_version);
                CHECK(sum.apply_version == one.apply_version);
                CHECK(sum.loss == doctest::Approx(one.loss).epsilon(1e-5));
                CHECK(sum.count == (one.samples + 7) / 8);
            }
        }
}

TEST_CASE("interval: staleness counts from the last pull, and each pull serves as many pushes as it should") {
    auto scenario = learning_scenario("n-softsync", 4, 8);
    scenario.protocol.n = 2;
    scenario.stop.epochs = 12;
    const auto task = learn::make_task(scenario);
    const auto done = run(with_interval(scenario, 2, 3), *task);
    std::map<WorkerId, std::vector<Version>> read;
    for (const auto& row : done.ledger.gradients) read[row.worker].push_back(row.read_version);
    for (const auto& [worker, versions] : read) {
        CAPTURE(worker);
        REQUIRE(versions.size() > 9);
        for (std::size_t k = 0; k < versions.size(); ++k)
            if (k % 3 != 0)
                CHECK(versions[k] == versions[k - 1]);
            else if (k > 0)
                CHECK(versions[k] > versions[k - 1]);
    }
}

TEST_CASE("interval: recorded steps are computed again to the same weights, whatever the buffers are called") {
    for (const char* protocol : {"hardsync", "n-softsync", "async", "ringmaster"})
        for (const auto& [push_every, pull_every] : {std::pair{2, 1}, {1, 3}, {3, 2}}) {
            if (protocol[0] == 'r' && pull_every > 1) continue;
            CAPTURE(protocol);
            CAPTURE(push_every);
            CommunicationSpec communication{push_every, pull_every, {}};
            const auto run = record(protocol, 3, -1, -1, momentum(), communication);
            REQUIRE(run.report.status == Status::finished);
            check_recomputed(run, run.steps);
            const auto renamed = Renamed()(run.steps);
            for (std::uint64_t seed = 0; seed < 5; ++seed) check_recomputed(run, merged_anyhow(renamed, seed));
            const auto cut = record(protocol, 3, 40, -1, momentum(), communication);
            REQUIRE(cut.report.status == Status::interrupted);
            check_recomputed(cut, cut.steps);
        }
}

TEST_CASE("devices: a gradient takes as long as the slowest of its worker's devices, and the sum of theirs") {
    auto scenario = timing_scenario("async", 2, 10);
    WorkerGroup one, three;
    three.devices = 3;
    three.sum_s = 0.001;
    scenario.workers.groups = {one, three};
    scenario.cluster.noise.cv = 0.3;
    scenario.stop.gradients = 50;
    const auto done = simulate(scenario, 10000);
    for (const auto& row : done.ledger.gradients) {
        if (row.end_ns < 0) continue;
        const auto factor = [&](RoleId role, std::int64_t seq) { return sim::noise_factor(scenario, role, seq); };
        const std::int64_t seq = row.worker_seq;
        // 1 ms a sample; of 10 samples the largest of three parts has 4.
        const double expected =
            row.worker == 0
                ? 0.010 * factor(1, seq)
                : 0.004 * std::max({factor(2, 3 * seq), factor(2, 3 * seq + 1), factor(2, 3 * seq + 2)}) + 0.001;
        CHECK(1e-9 * static_cast<double>(row.end_ns - row.begin_ns) == doctest::Approx(expected).epsilon(1e-6));
    }
    // Two devices have nothing to do where there is one sample.
    sim::Noise noise(scenario);
    CHECK(noise.factor({2, 7, 1}) == sim::noise_factor(scenario, 2, 21));
}
