// Simulated training held against plain loops that a reader can check: bit for bit where the protocol fixes the order
// of the sums.
#include "core/learning_rate.hpp"
#include "learn/apply.hpp"
#include "learn/pool.hpp"
#include "support/optimizers.hpp"
#include "support/simulate.hpp"

#include <doctest/doctest.h>
#include <cstring>

using namespace rubato;
using namespace rubato::test;

namespace {

/// Momentum, weight decay and a drop of the rate after the first of two epochs.
Scenario training(const std::string& protocol, int lambda, int batch_size, const std::string& model = "mlp") {
    Scenario scenario = learning_scenario(protocol, lambda, batch_size, model);
    scenario.optimizer.name = "momentum";
    scenario.optimizer.momentum = 0.9;
    scenario.optimizer.weight_decay = 1e-4;
    scenario.optimizer.schedule = {{1, 0.5}};
    scenario.stop.epochs = 2;
    scenario.pool_threads = 2;
    return scenario;
}

std::uint64_t simulated_hash(const Scenario& scenario, const learn::Task& task, Ledger* ledger = nullptr) {
    const auto run = simulate(scenario, task.samples(), {}, &task);
    REQUIRE(run.report.status == Status::finished);
    if (ledger) *ledger = run.ledger;
    return *run.report.weights_hash;
}

struct Loop {
    const learn::Task& task;
    Scenario scenario;
    std::vector<float> weights = std::vector<float>(static_cast<std::size_t>(task.parameters()));
    learn::Optimizer optimizer{scenario.optimizer, task.parameters()};
    std::unique_ptr<learn::Workspace> workspace = task.workspace();
    std::int64_t samples = 0;
    Version version = 0;

    /// One update from these slices of one epoch, weighted by their samples, added in the order given.
    void update(const std::vector<std::pair<WorkerId, Batch>>& slices) {
        std::vector<std::vector<float>> gradients;
        std::int64_t total = 0;
        for (const auto& [worker, batch] : slices) {
            gradients.emplace_back(weights.size());
            task.gradient(weights, worker, 0, batch, gradients.back(), *workspace);
            total += batch.count;
        }
        std::vector<learn::Summand> summands;
        for (std::size_t i = 0; i < slices.size(); ++i)
            summands.push_back({gradients[i].data(), static_cast<float>(static_cast<double>(slices[i].second.count) /
                                                                        static_cast<double>(total))});
        const double done = static_cast<double>(samples) / static_cast<double>(task.samples());
        const learn::StepInput step{summands, scheduled_rate(scenario.optimizer, done), -1, ++version};
        optimizer.apply(weights, weights, {&step, 1});
        samples += total;
    }
    /// Sequential SGD, or hardsync with lambda workers, over two epochs in slices of batch_size.
    std::uint64_t train(int lambda, int batch_size) {
        task.initialize(weights);
        for (int epoch = 0; epoch < 2; ++epoch)
            for (std::int64_t first = 0; first < task.samples();) {
                std::vector<std::pair<WorkerId, Batch>> round;
                for (int worker = 0; worker < lambda && first < task.samples(); ++worker) {
                    const auto count = std::min<std::int64_t>(batch_size, task.samples() - first);
                    round.push_back({worker, {epoch, static_cast<std::int32_t>(count), first}});
                    first += count;
                }
                update(round);
            }
        return learn::weights_hash(weights);
    }
};

}  // namespace

TEST_CASE("one worker: every policy gives bitwise the weights of sequential SGD") {
    for (const char* model : {"softmax", "mlp"})
        for (const char* protocol : {"hardsync", "n-softsync", "async"})
            for (const int batch_size : {1, 10, 121, 500}) {
                const auto scenario = training(protocol, 1, batch_size, model);
                const auto task = learn::make_task(scenario);
                CAPTURE(protocol);
                CAPTURE(batch_size);
                CHECK(simulated_hash(scenario, *task) == Loop{*task, scenario}.train(1, batch_size));
            }
}

TEST_CASE("one worker: every optimizer under every rule gives bitwise the weights of sequential training") {
    for (const char* protocol : {"hardsync", "async"})
        for (const auto& optimizer : all_optimizers()) {
            auto scenario = training(protocol, 1, 10);
            scenario.optimizer = optimizer;
            const auto task = learn::make_task(scenario);
            Loop loop{*task, scenario};
            CAPTURE(protocol);
            CAPTURE(label(optimizer));
            CHECK(simulated_hash(scenario, *task) == loop.train(1, 10));
            CHECK(loop.optimizer.arrays() * task->parameters() ==
                  static_cast<std::int64_t>(loop.optimizer.state().size()));
        }
}

TEST_CASE("hardsync gives bitwise the weights of a sequential loop with every optimizer, too") {
    for (const auto& optimizer : all_optimizers()) {
        auto scenario = training("hardsync", 4, 10);
        scenario.optimizer = optimizer;
        // Of a sequential loop nobody keeps anything by worker.
        if (optimizer.staleness_rule.looks_at_weights()) continue;
        const auto task = learn::make_task(scenario);
        CAPTURE(label(optimizer));
        CHECK(simulated_hash(scenario, *task) == Loop{*task, scenario}.train(4, 10));
    }
}

TEST_CASE("hardsync gives bitwise the weights of a sequential loop over the same slices, uneven rounds included") {
    for (const int lambda : {2, 3, 4, 7})
        for (const int batch_size : {5, 10, 16, 60, 200}) {
            const auto scenario = training("hardsync", lambda, batch_size);
            const auto task = learn::make_task(scenario);
            CAPTURE(lambda);
            CAPTURE(batch_size);
            CHECK(simulated_hash(scenario, *task) == Loop{*task, scenario}.train(lambda, batch_size));
        }
}

TEST_CASE("hardsync is within 1e-5 relative of one batch of batch_size * lambda") {
    const auto scenario = training("hardsync", 4, 8);
    const auto task = learn::make_task(scenario);
    Loop workers{*task, scenario}, one{*task, scenario};
    workers.train(4, 8);
    one.train(1, 32);
    double distance = 0, norm = 0;
    for (std::size_t i = 0; i < one.weights.size(); ++i) {
        distance += std::pow(workers.weights[i] - one.weights[i], 2);
        norm += std::pow(one.weights[i], 2);
    }
    CHECK(std::sqrt(distance / norm) < 1e-5);
    CHECK(simulated_hash(scenario, *task) == learn::weights_hash(workers.weights));
}

TEST_CASE("n-softsync with n = lambda is async, row for row and bit for bit") {
    auto soft = training("n-softsync", 5, 8);
    soft.protocol.n = 5;
    const auto task = learn::make_task(soft);
    const auto async = training("async", 5, 8);
    Ledger a, b;
    CHECK(simulated_hash(soft, *task, &a) == simulated_hash(async, *task, &b));
    CHECK(a.gradients == b.gradients);
    CHECK(a.updates == b.updates);
}

TEST_CASE("runs that differ only in the staleness rule have the same schedule, row for row") {
    std::vector<Ledger> ledgers;
    std::vector<std::uint64_t> hashes;
    for (const auto kind :
         {StalenessRule::Kind::none, StalenessRule::Kind::inverse_n, StalenessRule::Kind::inverse_mean_staleness,
          StalenessRule::Kind::inverse_staleness, StalenessRule::Kind::polynomial, StalenessRule::Kind::sqrt_batch}) {
        auto scenario = training("n-softsync", 6, 8);
        scenario.protocol.n = 3;
        scenario.optimizer.staleness_rule.kind = kind;
        const auto task = learn::make_task(scenario);
        ledgers.emplace_back();
        hashes.push_back(simulated_hash(scenario, *task, &ledgers.back()));
        for (auto& row : ledgers.back().gradients) row.scale = row.loss = 0;
    }
    for (const auto& ledger : ledgers) CHECK(ledger.gradients == ledgers[0].gradients);
    for (std::size_t i = 1; i < hashes.size(); ++i) CHECK(hashes[i] != hashes[0]);
}

TEST_CASE("the pushed weight of each gradient reaches the model exactly once: every element of every gradient is 1") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"}) {
        auto scenario = training(protocol, 6, 8, "constant");
        scenario.protocol.n = 3;
        scenario.model.dimension = 5;
        scenario.optimizer = {};
        scenario.optimizer.learning_rate = 1;
        scenario.stop = {};
        scenario.stop.gradients = 480;
        const auto task = learn::make_task(scenario);
        Ledger ledger;
        const auto hash = simulated_hash(scenario, *task, &ledger);
        const std::vector<float> expected(5, -static_cast<float>(ledger.updates.size()));
        CAPTURE(protocol);
        CHECK(hash == learn::weights_hash(expected));
    }
}

TEST_CASE("real gradients under way do not outlive a run that ends early") {
    const auto scenario = training("async", 6, 8);
    const auto task = learn::make_task(scenario);
    for (std::int64_t steps = 10; steps < 60; steps += 7) {
        const auto run = simulate(scenario, task->samples(), {}, task.get(), steps);
        CHECK(run.report.status == Status::interrupted);
        CHECK(run.ledger.count(rubato::Outcome::cancelled) > 0);
        CHECK(run.report.weights_hash.has_value());
    }
    // An exception in the middle: the pool still works on buffers of the run that is being taken down.
    for (int steps = 10; steps < 60; steps += 7) {
        IdealNetwork network(sim::star_hosts(scenario), 1e-5, 1e12);
        const auto placement = sim::place(scenario, network.hosts());
        auto input = input_of(scenario, *task);
        int left = steps;
        input.observer = [&](Time, RoleId, const Event&, const Actions&) {
            if (left-- == 0) throw std::runtime_error("enough");
        };
        CHECK_THROWS_WITH(sim::Run(input, network, placement).go(), "enough");
    }
}
