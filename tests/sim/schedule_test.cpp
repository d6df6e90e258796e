// Runs that follow a trace of delays: held against recursions by hand and against the runs that left the trace.
#include "sim/schedule/schedule_run.hpp"
#include "support/random.hpp"
#include "support/simulate.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <numbers>

using namespace rubato;
using namespace rubato::test;

namespace {

using Rows = std::vector<std::pair<WorkerId, Version>>;

sim::DelayTrace trace_of(const Rows& rows) {
    sim::DelayTrace trace;
    trace.file = "delays.csv";
    for (const auto& [worker, version] : rows)
        trace.gradients.push_back({worker, version, static_cast<std::int64_t>(trace.gradients.size()) + 2, -1, -1});
    return trace;
}

struct Followed {
    trace::DriverReport report;
    Ledger ledger;
    std::int64_t accepted = 0, held_max = 0;
    bool stopped = false;
};

Followed follow(const Scenario& scenario, const learn::Task& task, const sim::DelayTrace& trace) {
    auto input = input_of(scenario, task);
    Followed result;
    const sim::ScheduleRun* self = nullptr;
    Time clock = 0;
    sim::ScheduleRun run(input, trace, [&](Time now, RoleId role, const Event&, const Actions& actions) {
        CHECK(role == 0);
        CHECK(now >= clock);
        clock = now;
        result.ledger.add(actions);
        result.held_max = std::max(result.held_max, self->buffers_held());
    });
    self = &run;
    result.report = run.go();
    result.accepted = run.accepted();
    result.stopped = run.stopped_by_itself();
    return result;
}

/// f(w) = w^2 / 2 from w = 1.
Scenario bowl(int lambda, double rate, std::int64_t gradients) {
    Scenario scenario = learning_scenario("async", lambda, 1, "quadratic", 1000);
    scenario.optimizer.learning_rate = rate;
    scenario.stop.gradients = gradients;
    return scenario;
}

/// Weights after each update of w <- w - rate * w_read, in the arithmetic of the kernels.
std::vector<float> recursion(const Rows& rows, double rate) {
    std::vector<float> weights{1.0f};
    for (const auto& [worker, read] : rows)
        weights.push_back(weights.back() - static_cast<float>(rate) * weights[static_cast<std::size_t>(read)]);
    return weights;
}

Rows fixed_delay(std::int64_t delay, std::int64_t count, int lambda) {
    Rows rows;
    for (std::int64_t k = 0; k < count; ++k)
        rows.emplace_back(static_cast<WorkerId>(k % lambda), std::max<std::int64_t>(0, k - delay));
    return rows;
}

std::uint64_t hash_of(float weight) {
    return learn::weights_hash({&weight, 1});
}

/// What gradients.csv of a run tells.
sim::DelayTrace trace_of(const Ledger& ledger) {
    sim::DelayTrace trace;
    trace.has_positions = true;
    std::map<std::int64_t, sim::Delay> accepted;
    for (const auto& row : ledger.gradients) {
        const sim::Delay delay{row.worker, row.read_version, 0, row.batch.epoch, row.batch.first};
        if (row.seq >= 0)
            accepted[row.seq] = delay;
        else
            trace.unfinished.push_back(delay);
    }
    for (const auto& [seq, delay] : accepted) trace.gradients.push_back(delay);
    return trace;
}

std::string error_of(const std::string& text, int lambda = 4) {
    const TemporaryDirectory directory;
    const std::string path = (directory.path() / "d.csv").string();
    std::ofstream(path, std::ios::binary) << text;
    try {
        sim::read_delays(path, lambda);
    } catch (const sim::ScheduleError& error) {
        const std::string what = error.what();
        CHECK(what.starts_with(path + ":"));
        return what.substr(path.size() + 1);
    }
    return "";
}

}  // namespace

TEST_CASE("schedule: gradient descent with a fixed delay is the recursion by hand, bit for bit") {
    for (const std::int64_t delay : {0, 1, 2, 5, 9})
        for (const int lambda : {1, static_cast<int>(delay) + 1, 3}) {
            const Rows rows = fixed_delay(delay, 200, lambda);
            const double rate = 0.1;
            const auto scenario = bowl(lambda, rate, 200);
            const auto task = learn::make_task(scenario);
            const auto run = follow(scenario, *task, trace_of(rows));
            const auto weights = recursion(rows, rate);
            CAPTURE(delay);
            CAPTURE(lambda);
            REQUIRE(run.report.status == Status::finished);
            CHECK(*run.report.weights_hash == hash_of(weights.back()));
            REQUIRE(run.ledger.gradients.size() == 200);
            for (std::size_t k = 0; k < 200; ++k) {
                const auto& row = run.ledger.gradients[k];
                const double read = weights[static_cast<std::size_t>(rows[k].second)];
                CHECK(row.loss == read * read / 2);
                CHECK(row.staleness() == std::min<std::int64_t>(delay, static_cast<std::int64_t>(k)));
                CHECK(row.applied_ns == static_cast<Time>(k + 1) * sim::schedule_tick_ns);
            }
            // Of each version that is still to be read: it and the gradient; and a few of the server's own.
            CHECK(run.held_max <= 2 * (delay + 1) + 4);
        }
}

TEST_CASE("schedule: a fixed delay d is stable just where 0 < rate < 2 cos(d pi / (2d + 1))") {
    for (const std::int64_t delay : {0, 1, 2, 3, 6}) {
        const auto d = static_cast<double>(delay);
        const double bound = 2 * std::cos(d * std::numbers::pi / (2 * d + 1));
        CHECK(bound > 0);
        for (const double factor : {0.05, 0.5, 0.95, 1.05}) {
            constexpr std::int64_t steps = 4000;
            const auto scenario = bowl(static_cast<int>(delay) + 1, factor * bound, steps);
            const auto task = learn::make_task(scenario);
            const auto run = follow(scenario, *task, trace_of(fixed_delay(delay, steps, static_cast<int>(delay) + 1)));
            CAPTURE(delay);
            CAPTURE(factor);
            if (factor < 1) {
                CHECK(run.report.status == Status::finished);
                CHECK(run.ledger.gradients.back().loss < 1e-4);
            } else {
                const double loss = run.ledger.gradients.back().loss;
                CHECK((run.report.status == Status::diverged || loss > 1e4));
            }
        }
    }
}

TEST_CASE("schedule: any version of the past may be read, in any order, and is kept as long as it is") {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        Random random(seed);
        const int lambda = 1 + static_cast<int>(random.below(5));
        Rows rows;
        for (std::int64_t k = 0; k < 300; ++k)
            rows.emplace_back(static_cast<WorkerId>(random.below(static_cast<std::size_t>(lambda))),
                              k - static_cast<std::int64_t>(
                                      random.below(static_cast<std::size_t>(std::min<std::int64_t>(k, 30) + 1))));
        const auto scenario = bowl(lambda, 0.02, 300);
        const auto task = learn::make_task(scenario);
        const auto run = follow(scenario, *task, trace_of(rows));
        CHECK(*run.report.weights_hash == hash_of(recursion(rows, 0.02).back()));
        CHECK(run.held_max <= 2 * 31 + lambda + 4);
        CHECK(run.report.servers.front().updates == 300);
    }
}

TEST_CASE("schedule: every gradient reaches the weights exactly once, under every policy") {
    constexpr int lambda = 4, rounds = 60;
    Rows aligned;
    for (int k = 0; k < lambda * rounds; ++k) aligned.emplace_back(k % lambda, k / lambda);
    for (const char* protocol : {"hardsync", "n-softsync"}) {
        auto scenario = learning_scenario(protocol, lambda, 1, "tagged", 1000);
        scenario.model.dimension = 2 * lambda;
        scenario.optimizer.learning_rate = lambda;  // the mean of lambda gradients, times lambda
        scenario.stop.gradients = lambda * rounds;
        const auto task = learn::make_task(scenario);
        const auto run = follow(scenario, *task, trace_of(aligned));
        std::vector<float> expected;
        for (int worker = 0; worker < lambda; ++worker) {
            expected.push_back(-rounds);
            expected.push_back(-rounds * (rounds + 1) / 2);
        }
        CAPTURE(protocol);
        CHECK(*run.report.weights_hash == learn::weights_hash(expected));
        CHECK(run.ledger.updates.size() == rounds);
        CHECK(run.ledger.count(rubato::Outcome::applied) == lambda * rounds);
    }
    // Thirteen gradients, two an update: one is left over.
    auto scenario = learning_scenario("n-softsync", lambda, 1, "constant", 1000);
    scenario.protocol.n = 2;
    scenario.optimizer.learning_rate = 1;
    scenario.stop.gradients = 13;
    const auto task = learn::make_task(scenario);
    Rows rows;
    for (int k = 0; k < 13; ++k) rows.emplace_back(k % lambda, std::max(0, k / 2 - 1));
    const auto run = follow(scenario, *task, trace_of(rows));
    CHECK(*run.report.weights_hash == hash_of(-6));
    CHECK(run.ledger.count(rubato::Outcome::applied) == 12);
    CHECK(run.ledger.count(rubato::Outcome::leftover) == 1);
}

TEST_CASE("schedule: the gradients of a simulated run as a trace give its weights, bit for bit") {
    const NetworkShape shapes[] = {{}, {1e-3, 1e5, 2.0, 7}, {1e-2, 1e6, 0.5, 8}};
    for (const char* protocol : {"async", "n-softsync", "hardsync"})
        for (const auto& shape : shapes)
            for (const auto sampling : {Sampling::shared_epoch, Sampling::strided, Sampling::random, Sampling::sharded})
                for (const double epochs : {3.0, 2.37}) {
                    auto scenario = learning_scenario(protocol, 6, 8);
                    scenario.protocol.n = 2;
                    scenario.optimizer.name = "momentum";
                    scenario.optimizer.momentum = 0.9;
                    scenario.optimizer.staleness_rule.kind = StalenessRule::Kind::inverse_staleness;
                    scenario.data.sampling = sampling;
                    scenario.stop.epochs = epochs;
                    scenario.evaluate.every_epochs = 0.5;
                    const auto task = learn::make_task(scenario);
                    const auto simulated = simulate(scenario, task->samples(), shape, task.get());
                    CAPTURE(protocol);
                    CAPTURE(static_cast<int>(sampling));
                    CAPTURE(shape.latency_s);
                    CAPTURE(epochs);
                    REQUIRE(simulated.report.status == Status::finished);
                    const auto run = follow(scenario, *task, trace_of(simulated.ledger));
                    CHECK(run.stopped);
                    CHECK(run.report.weights_hash == simulated.report.weights_hash);
                    REQUIRE(run.ledger.updates.size() == simulated.ledger.updates.size());
                    REQUIRE(run.ledger.evals.size() == simulated.ledger.evals.size());
                    for (std::size_t i = 0; i < run.ledger.evals.size(); ++i) {
                        CHECK(run.ledger.evals[i].metrics == simulated.ledger.evals[i].metrics);
                        CHECK(run.ledger.evals[i].train_loss == simulated.ledger.evals[i].train_loss);
                    }
                }
}

TEST_CASE("schedule: timing alone, a limit of time, and gradients that were begun") {
    auto scenario = bowl(3, 0.1, 1000);
    scenario.stop.seconds = 20.5;
    const auto task = learn::make_task(scenario);
    const auto run = follow(scenario, *task, trace_of(fixed_delay(2, 100, 3)));
    CHECK(run.stopped);
    CHECK(run.report.status == Status::finished);
    CHECK(run.ledger.updates.size() == 21);  // the one under way is done
    CHECK(run.ledger.count(rubato::Outcome::applied) + run.ledger.count(rubato::Outcome::cancelled) ==
          static_cast<std::int64_t>(run.ledger.gradients.size()));
    CHECK(run.ledger.count(rubato::Outcome::cancelled) == 2);
}

TEST_CASE("schedule: what cannot be followed is refused with file and line") {
    const auto refusal = [](const Scenario& scenario, const Rows& rows) -> std::string {
        const auto task = learn::make_task(scenario);
        try {
            follow(scenario, *task, trace_of(rows));
        } catch (const sim::ScheduleError& error) {
            return error.what();
        }
        return "";
    };
    auto scenario = bowl(2, 0.1, 100);
    scenario.protocol.name = "n-softsync";
    CHECK(refusal(scenario, {{0, 0}, {1, 0}, {0, 1}, {1, 2}}) ==
          "delays.csv:5: read_version: gradient 3 cannot have read version 2, which lies in its future: n-softsync has "
          "made 1 updates by then");
    scenario.protocol.name = "hardsync";
    CHECK(refusal(scenario, {{0, 0}, {1, 0}, {0, 0}})
              .starts_with("delays.csv:4: read_version: gradient 2 has staleness 1"));
    CHECK(refusal(scenario, {{0, 0}, {0, 0}}) ==
          "delays.csv:3: worker: hardsync has no batch for worker 0 at version 0");
}

TEST_CASE("schedule: a file of delays is read, or refused with the line") {
    const TemporaryDirectory directory;
    const std::string path = (directory.path() / "d.csv").string();
    std::ofstream(path) << "\xef\xbb\xbfread_version,host,worker\r\n0,\"a,b\",3\r\n\r\n1,c,0\r\n";
    const auto trace = sim::read_delays(path, 4);
    REQUIRE(trace.gradients.size() == 2);
    CHECK(trace.gradients[0].worker == 3);
    CHECK(trace.gradients[1].read_version == 1);
    CHECK(trace.gradients[1].line == 4);
    CHECK_FALSE(trace.has_positions);
    std::ofstream(path) << "seq,worker,read_version,data_epoch,data_first\n1,0,0,0,8\n-1,2,1,0,16\n0,1,0,0,0\n";
    const auto rows = sim::read_delays(path, 4);
    CHECK(rows.gradients[0].worker == 1);
    CHECK(rows.unfinished.size() == 1);
    CHECK(rows.has_positions);
    CHECK(rows.checksum != trace.checksum);

    CHECK(error_of("") == "1: the file is empty; expected a header with the columns worker and read_version");
    CHECK(error_of("worker,version\n0,0\n") ==
          "1: the header has no column read_version; expected worker and read_version");
    CHECK(error_of("worker,read_version\n") == "1: there is no row of a gradient that was accepted");
    CHECK(error_of("worker,read_version\n0,0\n4,0\n") ==
          "3: worker: expected 0 to 3 (the scenario has 4 workers), found 4");
    CHECK(error_of("worker,read_version\n0,0\n-1,0\n").starts_with("3: worker: expected 0 to 3"));
    CHECK(error_of("worker,read_version\n0,0\n1,2\n").starts_with("3: read_version: gradient 1 cannot have read"));
    CHECK(error_of("worker,read_version\n0,-1\n") == "2: read_version: expected at least 0, found -1");
    CHECK(error_of("worker,read_version\n0,1.5\n") == "2: read_version: expected a whole number, found \"1.5\"");
    CHECK(error_of("worker,read_version\n0\n") == "2: expected 2 cells as in the header, found 1");
    CHECK(error_of("worker,read_version,count\n0,0,1\n0,0,3\n").starts_with("3: count: expected 1, found 3: a sched"));
    CHECK(error_of("seq,worker,read_version\n0,0,0\n100,0,0\n")
              .starts_with("3: seq: expected 1, found 100: rows are missing"));
    CHECK(error_of("seq,worker,read_version\n0,0,0\n0,1,0\n") == "3: seq: 0 stands in an earlier row, too");
    CHECK(error_of("seq,worker,read_version\n-1,0,0\n") == "2: there is no row of a gradient that was accepted");
    CHECK_THROWS_AS(sim::read_delays("/nowhere/d.csv", 4), sim::ScheduleError);
}
