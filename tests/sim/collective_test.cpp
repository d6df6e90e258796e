// Replicas without a server: the same bits as hardsync, the recursions by hand, the order of times, and the textbook
// costs of allreduces.
#include "core/collective/plan.hpp"
#include "support/simulate.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <deque>
#include <map>

using namespace rubato;
using namespace rubato::test;

namespace {

Scenario replicas(const std::string& name, int lambda, int batch_size, std::int64_t samples = 160,
                  AllreduceAlgorithm algorithm = AllreduceAlgorithm::ordered) {
    Scenario scenario = learning_scenario(name, lambda, batch_size, "mlp", samples);
    scenario.model.hidden = {9, 6, 5};
    scenario.data.sampling = Sampling::strided;
    scenario.stop = {};
    scenario.stop.updates = 60;
    auto& spec = scenario.protocol.collective;
    spec.mode = name == "no-comm"      ? CollectiveMode::no_comm
                : name == "layer-wise" ? CollectiveMode::layer_wise
                : name == "allreduce"  ? CollectiveMode::sync
                                       : CollectiveMode::delayed;
    spec.algorithm = spec.small = algorithm;
    return scenario;
}

Simulated run(Scenario scenario, const NetworkShape& network = {1e-4, 1e8, 0.5, 3}, const Watcher& watch = nullptr) {
    const auto task = learn::make_task(scenario);
    // As the network has them.
    if (scenario.model.name == "mlp") {
        int inputs = 16;
        for (const int width : {9, 6, 5, 3}) scenario.layers.push_back((std::exchange(inputs, width) + 1) * width);
    }
    auto done = simulate(scenario, task->samples(), network, task.get(), -1, watch);
    INFO(done.report.detail);
    REQUIRE(done.report.status == Status::finished);
    return done;
}

std::map<std::pair<WorkerId, std::int64_t>, double> losses_of(const Simulated& run) {
    std::map<std::pair<WorkerId, std::int64_t>, double> losses;
    for (const auto& row : run.ledger.gradients) losses[{row.worker, row.worker_seq}] = row.loss;
    return losses;
}

double largest_difference(const Simulated& a, const Simulated& b) {
    const auto one = losses_of(a), other = losses_of(b);
    REQUIRE(one.size() == other.size());
    double worst = 0;
    for (const auto& [key, loss] : one) worst = std::max(worst, std::abs(loss - other.at(key)) / std::abs(loss));
    return worst;
}

}  // namespace

TEST_CASE("collective: replicas that never meet are as far as the slowest of them") {
    Scenario scenario = timing_scenario("no-comm", 3, 5, 0);
    scenario.data.sampling = Sampling::strided;
    scenario.protocol.collective.mode = CollectiveMode::no_comm;
    scenario.workers.groups = {{1, "default", 0}, {2, "slow", 0}};
    DeviceSpec& slow = scenario.cluster.devices["slow"] = scenario.cluster.devices["default"];
    slow.b *= 10;  // 5 ms and 50 ms a gradient
    scenario.stop.updates = 40;
    const auto done = simulate(scenario, 1000);
    REQUIRE(done.report.status == Status::finished);
    REQUIRE(done.ledger.updates.size() == 40);
    CHECK(done.ledger.updates.back().time_ns == doctest::Approx(40 * 0.05e9).epsilon(0.01));
    for (const GradientRow& row : done.ledger.gradients) CHECK(row.applied_ns >= row.end_ns);
}

TEST_CASE("collective: ordered sums have the bits of hardsync, whatever the optimizer and the samples") {
    for (const char* optimizer : {"sgd", "momentum", "adam"})
        for (const int lambda : {1, 2, 3, 5})
            for (const std::int64_t samples : {160, 121}) {
                CAPTURE(optimizer);
                CAPTURE(lambda);
                CAPTURE(samples);
                Scenario scenario = replicas("allreduce", lambda, 7, samples);
                scenario.optimizer.name = optimizer;
                scenario.optimizer.momentum = 0.9;
                scenario.optimizer.schedule = {{1.5, 0.1}};
                Scenario hardsync = scenario;
                hardsync.protocol = {};
                hardsync.protocol.name = "hardsync";
                const auto expected = run(hardsync), mine = run(scenario);
                CHECK(mine.report.weights_hash == expected.report.weights_hash);
                CHECK(losses_of(mine) == losses_of(expected));
                CHECK(mine.ledger.updates.size() == 60);
                for (const auto& row : mine.ledger.gradients) CHECK(row.staleness() == 0);
            }
}

TEST_CASE("collective: layer by layer, in all three orders, the weights are those of one sum, over 200 iterations") {
    Scenario sync = replicas("allreduce", 4, 5);
    sync.stop.updates = 200;
    const auto expected = run(sync);
    for (const auto order : {ApplyOrder::wait_all, ApplyOrder::backprop, ApplyOrder::completion})
        for (const std::int64_t bucket_bytes : {0, 400}) {
            Scenario scenario = replicas("layer-wise", 4, 5);
            scenario.stop.updates = 200;
            scenario.protocol.collective.order = order;
            scenario.protocol.collective.bucket_bytes = bucket_bytes;
            const auto mine = run(scenario);
            CHECK(mine.report.weights_hash == expected.report.weights_hash);
            CHECK(losses_of(mine) == losses_of(expected));
        }
}

TEST_CASE("collective: all algorithms agree within 1e-5, and replicas are alike") {
    for (const char* name : {"allreduce", "layer-wise", "delayed"})
        for (const int lambda : {3, 4, 6}) {
            const auto ordered = run(replicas(name, lambda, 5));
            for (const auto algorithm : {AllreduceAlgorithm::ring, AllreduceAlgorithm::recursive_doubling,
                                         AllreduceAlgorithm::rabenseifner, AllreduceAlgorithm::tree}) {
                CAPTURE(name);
                CAPTURE(lambda);
                CAPTURE(static_cast<int>(algorithm));
                // Every worker's losses: a replica that is another one shows.
                CHECK(largest_difference(ordered, run(replicas(name, lambda, 5, 160, algorithm))) < 1e-5);
            }
        }
}

TEST_CASE("collective: a delay of 0 is none, and one of k applies gradient t after iteration t + k") {
    Scenario none = replicas("delayed", 4, 5);
    none.protocol.collective.delay = 0;
    CHECK(run(none).report.weights_hash == run(replicas("allreduce", 4, 5)).report.weights_hash);
    for (const int delay : {1, 2, 3}) {
        Scenario scenario = replicas("delayed", 4, 5);
        scenario.protocol.collective.delay = delay;
        const auto done = run(scenario);
        CHECK(done.ledger.gradients.size() == 240);
        for (const auto& row : done.ledger.gradients) {
            CHECK(row.staleness() == std::min<std::int64_t>(row.worker_seq, delay));
            CHECK(row.apply_version == row.worker_seq);
        }
        for (const auto& row : done.ledger.iterations) {
            CHECK(row.it.in_flight <= delay);
            CHECK(row.it.version == std::max<std::int64_t>(0, row.it.iteration + 1 - delay));
        }
    }
}

TEST_CASE("collective: delayed gradients follow the recursion by hand on a quadratic") {
    for (const int delay : {0, 1, 2, 3})
        for (const double momentum : {0.0, 0.9}) {
            Scenario scenario = replicas("delayed", 3, 4, 120);
            scenario.model.name = "quadratic";
            scenario.model.dimension = 6;
            scenario.model.conditioning = 10;
            scenario.model.noise = 0;
            scenario.protocol.collective.delay = delay;
            scenario.optimizer.name = momentum > 0 ? "momentum" : "sgd";
            scenario.optimizer.momentum = momentum;
            scenario.optimizer.learning_rate = 0.02;
            const auto done = run(scenario);
            // Without noise all workers have the same gradient of the same weights.
            const auto task = learn::make_task(scenario);
            const auto n = static_cast<std::size_t>(task->parameters());
            std::vector<float> weights(n), velocity(n, 0);
            task->initialize(weights);
            auto workspace = task->workspace();
            std::deque<std::vector<float>> waiting;
            const auto losses = losses_of(done);
            for (std::int64_t t = 0; t < 60; ++t) {
                std::vector<float> gradient(n);
                const double loss = task->gradient(weights, 0, t, {0, 4, 0}, gradient, *workspace);
                for (WorkerId worker = 0; worker < 3; ++worker)
                    CHECK(losses.at({worker, t}) == doctest::Approx(loss).epsilon(1e-4));
                waiting.push_back(gradient);
                if (static_cast<int>(waiting.size()) <= delay) continue;
                for (std::size_t i = 0; i < n; ++i) {
                    velocity[i] = static_cast<float>(momentum) * velocity[i] - 0.02f * waiting.front()[i];
                    weights[i] += velocity[i];
                }
                waiting.pop_front();
            }
        }
}

TEST_CASE("collective: without communication replicas go their own ways, each by its own gradients") {
    const auto done = run(replicas("no-comm", 3, 5));
    Scenario alone = replicas("no-comm", 1, 5);
    const auto losses = losses_of(done);
    CHECK(losses.at({0, 30}) != losses_of(run(alone)).at({0, 30}));  // on other samples
    CHECK(done.report.messages <= 60);                               // but for evaluations
    for (const auto& row : done.ledger.workers) CHECK(row.push_moving_ns == 0);
}

namespace {

/// Timing alone: a gradient takes 90 ms, of which the backward pass 60, in ten layers.
Scenario timed(const std::string& name, int lambda, std::int64_t bytes, AllreduceAlgorithm algorithm) {
    Scenario scenario = timing_scenario("hardsync", lambda, 4, 0);
    scenario.protocol.name = name;
    scenario.data.sampling = Sampling::strided;
    auto& spec = scenario.protocol.collective;
    spec.mode = name == "no-comm"      ? CollectiveMode::no_comm
                : name == "layer-wise" ? CollectiveMode::layer_wise
                : name == "allreduce"  ? CollectiveMode::sync
                                       : CollectiveMode::delayed;
    spec.algorithm = spec.small = algorithm;
    scenario.cost.push_bytes = scenario.cost.pull_bytes = bytes;
    scenario.cluster.devices["default"].b = 0.09 / 4;
    scenario.layers.assign(10, bytes / 10);
    scenario.layer_times.assign(10, {0.003, 0.006});
    scenario.layer_batch_size = 4;
    scenario.stop = {};
    scenario.stop.updates = 42;
    return scenario;
}

double period_s(const Scenario& scenario, const NetworkShape& network) {
    const auto done = simulate(scenario, 100000, network);
    REQUIRE(done.report.status == Status::finished);
    // Of the first worker's iterations, once as much is in flight as ever will be, and before the last ones are
    // drained.
    std::map<std::int64_t, Time> begins;
    for (const auto& row : done.ledger.iterations)
        if (row.worker == 0) begins[row.it.iteration] = row.it.begin_ns;
    return static_cast<double>(begins.at(34) - begins.at(10)) * 1e-9 / 24;
}

}  // namespace

TEST_CASE("collective: the less is waited for the shorter an iteration") {
    for (const std::int64_t bytes : {2'000'000, 8'000'000, 40'000'000})
        for (const int lambda : {2, 4, 8}) {
            CAPTURE(bytes);
            CAPTURE(lambda);
            const NetworkShape network{2e-5, 1e8, 0, 0};
            const auto of = [&](const std::string& name, int delay) {
                Scenario scenario = timed(name, lambda, bytes, AllreduceAlgorithm::ring);
                scenario.protocol.collective.delay = delay;
                return period_s(scenario, network);
            };
            const double none = of("no-comm", 0), sync = of("allreduce", 0), layers = of("layer-wise", 0);
            const double one = of("delayed", 1), two = of("delayed", 2), three = of("delayed", 3);
            CHECK(none == doctest::Approx(0.09).epsilon(1e-3));
            CHECK(none <= three * 1.0001);
            CHECK(three <= two * 1.005);
            CHECK(two <= one * 1.005);
            CHECK(one <= sync * 1.005);
            CHECK(layers <= sync * 1.005);
            // Layers are hidden behind the rest of the backward pass, and no more than that.
            CHECK(sync - layers <= 0.06 + 1e-6);
            const double communication = sync - none;
            if (communication > 0.06) CHECK(one <= layers * 1.005);
            // One delay hides what fits beside a gradient.
            CHECK(one == doctest::Approx(std::max(0.09, communication)).epsilon(0.02));
        }
}

TEST_CASE("collective: allreduces on one switch take what the textbook says, within 5 %") {
    const double latency = 5e-5, byte = 1e-8;
    for (const int lambda : {2, 4, 8, 16})
        for (const std::int64_t bytes : {1'600, 16'000'000}) {
            const double n = lambda, steps = std::log2(n), whole = static_cast<double>(bytes) * byte;
            const std::pair<AllreduceAlgorithm, double> costs[] = {
                {AllreduceAlgorithm::ring, 2 * (n - 1) * (latency + whole / n)},
                {AllreduceAlgorithm::recursive_doubling, steps * (latency + whole)},
                {AllreduceAlgorithm::rabenseifner, 2 * steps * latency + 2 * (n - 1) / n * whole},
                {AllreduceAlgorithm::tree, 2 * steps * (latency + whole)}};
            for (const auto& [algorithm, cost] : costs) {
                CAPTURE(lambda);
                CAPTURE(bytes);
                CAPTURE(static_cast<int>(algorithm));
                const double took =
                    period_s(timed("allreduce", lambda, bytes, algorithm), {latency, 1 / byte, 0, 0}) - 0.09;
                CHECK(took == doctest::Approx(cost).epsilon(0.05));
            }
        }
}

TEST_CASE("collective: the delay that is chosen is the smallest that hides the communication") {
    for (const auto& [bytes, expected] : {std::pair<std::int64_t, int>{1000, 0}, {4'000'000, 1}}) {
        Scenario scenario = timed("adaptive-delay", 4, bytes, AllreduceAlgorithm::ring);
        scenario.protocol.collective.adaptive = true;
        scenario.stop.updates = 200;
        const auto done = simulate(scenario, 100000, {2e-5, 1e8, 0, 0});
        REQUIRE(done.report.status == Status::finished);
        std::map<std::int32_t, int> iterations;
        std::map<std::int64_t, std::int32_t> agreed;
        for (const auto& row : done.ledger.iterations) {
            ++iterations[row.it.delay];
            const auto [it, fresh] = agreed.emplace(row.it.iteration, row.it.delay);
            CHECK(it->second == row.it.delay);
        }
        CAPTURE(iterations[0]);
        CAPTURE(iterations[2]);
        CHECK(iterations[expected] > 500);
    }
}
