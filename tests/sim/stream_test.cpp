// Streaming DiLoCo, held against its equations, number by number, against diloco, and against what it hides.
#include "core/averaging/tree_reduce.hpp"
#include "sim/recomputed.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rubato;
using namespace rubato::test;

namespace {

Scenario streaming(int lambda, int fragments, int every, int overlap, double keep, const std::string& model = "mlp") {
    Scenario scenario = learning_scenario("streaming-diloco", lambda, 4, model, 240);
    scenario.data.sampling = Sampling::strided;
    auto& spec = scenario.protocol.averaging;
    spec.tau = fragments * every;
    spec.outer_learning_rate = 0.7;
    spec.outer_momentum = 0.9;
    spec.stream = {fragments, overlap, keep};
    spec.phases.shards = fragments;
    spec.phases.by_layers = false;
    scenario.stop.updates = 12;
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

/// The whole run, without anything of its own: who is when at which step does not matter.
class ByHand {
public:
    ByHand(const Scenario& scenario, const learn::Task& task) : spec_(scenario.protocol.averaging), task_(task) {
        const auto width = static_cast<std::size_t>(task.parameters());
        joint_.resize(width);
        task.initialize(joint_);
        trend_.assign(width, 0);
        x_.assign(static_cast<std::size_t>(scenario.lambda()), joint_);
        rate_ = static_cast<float>(scenario.optimizer.learning_rate);
        const int fragments = spec_.stream.fragments, every = spec_.tau / fragments;
        const auto workspace = task.workspace();
        std::vector<float> gradient(width), sent;
        Version merged = 0;
        for (int step = 1; versions_ < *scenario.stop.updates; ++step) {
            for (std::size_t w = 0; w < x_.size(); ++w) {
                const Batch batch{0, scenario.workers.batch_size, 0};
                const double loss =
                    task_.gradient(x_[w], static_cast<WorkerId>(w), step - 1, batch, gradient, *workspace);
                expected[{static_cast<WorkerId>(w), step - 1}] = {loss, merged};
                for (std::size_t i = 0; i < width; ++i) x_[w][i] -= rate_ * gradient[i];
            }
            if (step % every == 0) exchange(static_cast<std::size_t>(step / every - 1));
            if (step - every < spec_.stream.overlap || (step - spec_.stream.overlap) % every != 0) continue;
            const auto f = static_cast<std::size_t>(merged++) % static_cast<std::size_t>(fragments);
            for (auto& x : x_)
                for (std::size_t i = first(f); i < first(f + 1); ++i)
                    x[i] = static_cast<float>((1 - spec_.stream.keep) * static_cast<double>(joint_[i]) +
                                              spec_.stream.keep * static_cast<double>(x[i]));
        }
    }
    const std::vector<float>& joint() const { return joint_; }
    std::map<std::pair<WorkerId, std::int64_t>, std::pair<double, Version>> expected;

private:
    std::size_t first(std::size_t fragment) const {
        const auto parts = even_ranges(static_cast<std::int64_t>(joint_.size()), spec_.stream.fragments);
        return fragment < parts.size() ? static_cast<std::size_t>(parts[fragment].first) : joint_.size();
    }
    void exchange(std::size_t number) {
        const std::size_t f = number % static_cast<std::size_t>(spec_.stream.fragments);
        const double eta = spec_.outer_learning_rate, mu = spec_.outer_momentum;
        for (std::size_t i = first(f); i < first(f + 1); ++i) {
            std::vector<float> sum;
            std::vector<double> count(x_.size(), 1);
            for (const auto& x : x_) sum.push_back(x[i]);
            for (std::size_t step = 1; step < sum.size(); step *= 2)
                for (std::size_t w = 0; w + step < sum.size(); w += 2 * step) {
                    const double part = count[w + step] / (count[w] + count[w + step]);
                    sum[w] = static_cast<float>((1 - part) * static_cast<double>(sum[w]) +
                                                part * static_cast<double>(sum[w + step]));
                    count[w] += count[w + step];
                }
            const double mean = sum[0], theta = joint_[i];
            trend_[i] = static_cast<float>(mu * static_cast<double>(trend_[i]) + theta - mean);
            joint_[i] = static_cast<float>((1 - eta) * theta + eta * mean - eta * mu * static_cast<double>(trend_[i]));
        }
        ++versions_;
    }

    AveragingSpec spec_;
    const learn::Task& task_;
    std::vector<float> joint_, trend_;
    std::vector<std::vector<float>> x_;
    float rate_ = 0;
    std::int64_t versions_ = 0;
};

std::map<std::pair<WorkerId, std::int64_t>, double> losses(const Simulated& done) {
    std::map<std::pair<WorkerId, std::int64_t>, double> all;
    for (const auto& row : done.ledger.gradients)
        if (row.outcome == rubato::Outcome::applied) all[{row.worker, row.worker_seq}] = row.loss;
    return all;
}

}  // namespace

TEST_CASE("streaming: one fragment that is waited for and replaced is diloco, bit for bit") {
    for (const int lambda : {1, 3, 4, 7})
        for (const char* optimizer : {"sgd", "adam"}) {
            CAPTURE(lambda);
            auto scenario = streaming(lambda, 1, 5, 0, 0);
            scenario.optimizer.name = optimizer;
            scenario.optimizer.learning_rate = 0.01;
            scenario.optimizer.schedule = {{1, 0.5}, {2, 0.5}};
            const auto mine = run(scenario);
            scenario.protocol.name = "diloco";
            const auto other = run(scenario);
            CHECK(mine.report.weights_hash == other.report.weights_hash);
            CHECK(losses(mine) == losses(other));
            CHECK(losses(mine).size() == 12 * 5 * static_cast<std::size_t>(lambda));
            // And none of what makes it streaming goes without notice.
            scenario.protocol.name = "streaming-diloco";
            scenario.protocol.averaging.stream.keep = 0.5;
            CHECK(run(scenario).report.weights_hash != other.report.weights_hash);
            scenario.protocol.averaging.stream = {1, 1, 0};
            CHECK(run(scenario).report.weights_hash != other.report.weights_hash);
        }
}

TEST_CASE("streaming: every loss and version is the one by hand, whatever the network does") {
    struct Case {
        int lambda, fragments, every, overlap;
        double keep;
    };
    const Case cases[] = {{1, 1, 3, 0, 0}, {2, 2, 3, 0, 0.5}, {3, 2, 3, 2, 0.5},  {5, 3, 4, 1, 0.25},
                          {4, 3, 1, 0, 0}, {3, 1, 4, 3, 0},   {6, 5, 2, 1, 0.75}, {3, 2, 2, 1, 1}};
    for (const Case& it : cases)
        for (const double latency : {1e-6, 0.003, 0.05}) {
            CAPTURE(it.lambda);
            CAPTURE(it.fragments);
            CAPTURE(it.overlap);
            CAPTURE(latency);
            auto scenario = streaming(it.lambda, it.fragments, it.every, it.overlap, it.keep, "quadratic");
            scenario.model.dimension = 7;
            scenario.model.conditioning = 10;
            scenario.model.noise = 0.5;
            const auto task = learn::make_task(scenario);
            const ByHand by_hand(scenario, *task);
            NetworkShape shape;
            shape.latency_s = latency;
            const auto done = run(scenario, shape);
            CHECK(done.report.weights_hash == learn::weights_hash(by_hand.joint()));
            std::int64_t seen = 0;
            for (const auto& row : done.ledger.gradients) {
                if (row.outcome != rubato::Outcome::applied) continue;
                const auto found = by_hand.expected.find({row.worker, row.worker_seq});
                REQUIRE(found != by_hand.expected.end());
                CHECK(row.loss == found->second.first);
                CHECK(row.read_version == found->second.second);
                CHECK(row.apply_version == row.worker_seq / it.every);
                // The first steps of an exchange are made on what the one before has not changed yet.
                const bool early = row.worker_seq % it.every < it.overlap && row.worker_seq >= it.every;
                CHECK(row.staleness() == (early ? 1 : 0));
                ++seen;
            }
            CHECK(seen == 12 * it.every * it.lambda);
            for (const auto& row : done.ledger.rounds) CHECK(row.shard == row.round % it.fragments);
        }
}

TEST_CASE("streaming: an exchange that is shorter than the overlap costs no time, a longer one the rest") {
    // Three workers take 4 ms a step. Of a half of a message each: to worker 0, to the driver, and two hops back.
    auto scenario = timing_scenario("streaming-diloco", 3, 4, 0);
    scenario.data.sampling = Sampling::random;
    auto& spec = scenario.protocol.averaging;
    spec.tau = 20;
    spec.phases.shards = 2;
    spec.phases.by_layers = false;
    scenario.cost.push_bytes = scenario.cost.pull_bytes = 2'000'000;
    scenario.stop.updates = 40;
    const double hop = 1e-3 + 1e6 / 1e9, m = 4 * hop;
    for (const int overlap : {0, 1, 2, 3, 5, 9}) {
        CAPTURE(overlap);
        spec.stream = {2, overlap, 0.5};
        const auto done = simulate(scenario, 1000, {1e-3, 1e9, 0, 0});
        REQUIRE(done.report.status == Status::finished);
        REQUIRE(done.ledger.rounds.size() == 40);
        const double wait = std::max(0.0, m - overlap * 4e-3);
        const Time period = done.ledger.rounds[39].prepare_end_ns - done.ledger.rounds[19].prepare_end_ns;
        CHECK(static_cast<double>(period) * 1e-9 / 20 == doctest::Approx(10 * 4e-3 + wait).epsilon(0.001));
        for (const auto& row : done.ledger.workers) {
            const Time waited = row.pull_request_ns + row.pull_moving_ns + row.policy_wait_ns + row.push_queued_ns;
            if (overlap >= 2) CHECK(waited < 2'000'000);  // for the first word
            if (overlap == 0) CHECK(waited > 39 * 5'000'000);
            if (overlap > 0) CHECK(row.hidden_ns > 0);
        }
    }
}

TEST_CASE("streaming: runs are computed again from their logs, as they are and as hosts would merge them") {
    auto scenario = streaming(5, 2, 3, 1, 0.5);
    scenario.optimizer.name = "adam";
    scenario.optimizer.learning_rate = 0.01;
    scenario.evaluate.every_epochs = 0.5;
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
