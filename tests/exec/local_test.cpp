// The local backend: the same roles as in simulation, as threads in real time.
#include "run_local.hpp"
#include "support/temporary_directory.hpp"
#include "trace/event_log.hpp"

#include <doctest/doctest.h>
#include <fstream>
#include <sstream>
#include <thread>

using namespace rubato;
using namespace rubato::test;

namespace {

Scenario small_training(const std::string& protocol, int lambda, int batch_size) {
    Scenario scenario = learning_scenario(protocol, lambda, batch_size, "mlp", 203);
    scenario.data.validation = 0.1;
    scenario.stop.epochs = 3;
    scenario.evaluate.every_epochs = 1;
    scenario.trace.events = true;
    return scenario;
}

struct LocalResult {
    trace::DriverReport report;
    Ledger ledger;
    std::string log;
};

LocalResult run_here(const Scenario& scenario, const learn::Task& task, const std::atomic<bool>* interrupted = nullptr,
                     const trace::EmulatedCosts* emulated = nullptr) {
    TemporaryDirectory directory;
    trace::RecorderOptions options;
    options.directory = (directory.path() / "run").string();
    options.scenario_json = "{}";
    options.command = "test";
    options.samples = task.samples();
    options.parameters = task.parameters();
    options.places = exec::local_places(scenario);
    trace::Recorder recorder(scenario, options);
    exec::RunInput input;
    input.interrupted = interrupted;
    input.emulated = emulated;
    LocalResult result;
    result.report = run_watched(scenario, task, recorder, input, result.ledger);
    recorder.finish(result.report);
    std::ifstream in(directory.path() / "run" / "events.log");
    std::stringstream content;
    content << in.rdbuf();
    result.log = content.str();
    return result;
}

trace::ReplayResult replay_text(const std::string& log, const Scenario& scenario, const learn::Task& task) {
    std::istringstream in(log);
    return trace::replay(in, make_roles(scenario, task.samples(), task.parameters()));
}

}  // namespace

TEST_CASE("local: hardsync ends with the weights of the simulated run, bit for bit") {
    for (const int lambda : {1, 2, 4, 5})
        for (const int batch_size : {7, 32, 300}) {
            const auto scenario = small_training("hardsync", lambda, batch_size);
            const auto task = learn::make_task(scenario);
            const auto simulated = simulate(scenario, task->samples(), {}, task.get());
            const auto local = run_here(scenario, *task);
            CAPTURE(lambda);
            CAPTURE(batch_size);
            REQUIRE(local.report.status == Status::finished);
            CHECK(local.report.weights_hash == simulated.report.weights_hash);
        }
}

TEST_CASE("local: with steps of the workers' own, hardsync ends with the weights of the simulated run, and replays") {
    for (const auto& [push_every, pull_every] : {std::pair{2, 1}, {1, 2}, {3, 2}}) {
        auto scenario = small_training("hardsync", 3, 16);
        scenario.workers.communication = {push_every, pull_every, {}};
        const auto task = learn::make_task(scenario);
        const auto simulated = simulate(scenario, task->samples(), {}, task.get());
        const auto local = run_here(scenario, *task);
        CAPTURE(push_every);
        CAPTURE(pull_every);
        REQUIRE(local.report.status == Status::finished);
        CHECK(local.report.weights_hash == simulated.report.weights_hash);
        REQUIRE_NOTHROW(check_books(scenario, task->samples(), local.ledger, local.ledger.told()));
        const auto same = replay_text(local.log, scenario, *task);
        CHECK_MESSAGE(same.same, same.difference);
        scenario.workers.communication = {};
        CHECK_FALSE(replay_text(local.log, scenario, *task).same);
        CHECK(simulate(scenario, task->samples(), {}, task.get()).report.weights_hash != local.report.weights_hash);
    }
}

TEST_CASE("local: a recorded run of every policy replays action by action, and an altered line is named") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"}) {
        auto scenario = small_training(protocol, 3, 16);
        scenario.protocol.n = 2;
        const auto task = learn::make_task(scenario);
        const auto local = run_here(scenario, *task);
        CAPTURE(protocol);
        const auto same = replay_text(local.log, scenario, *task);
        CHECK_MESSAGE(same.same, same.difference);
        CHECK(same.steps > 50);
        const auto at = local.log.find("gradient-ready");
        REQUIRE(at != std::string::npos);
        auto altered = local.log;
        altered[altered.find("id=", at) + 3] ^= 1;
        const auto differs = replay_text(altered, scenario, *task);
        CHECK_FALSE(differs.same);
        CHECK(differs.difference.find("worker") != std::string::npos);
        CHECK(differs.difference.find("gradient-ready") != std::string::npos);
        CHECK(differs.difference.find("line") != std::string::npos);
    }
}

TEST_CASE("local: through a tree, hardsync ends with the weights of the simulated run, and every policy replays") {
    for (const char* protocol : {"hardsync", "bsp", "n-softsync", "async", "ssp", "ringmaster"})
        for (const int fan_out : {2, 8}) {
            auto scenario = small_training(protocol, 5, 16);
            scenario.protocol.bound = 1;
            scenario.topology = "tree";
            scenario.tree.fan_out = fan_out;
            const auto task = learn::make_task(scenario);
            const auto local = run_here(scenario, *task);
            CAPTURE(protocol);
            CAPTURE(fan_out);
            REQUIRE(local.report.status == Status::finished);
            REQUIRE_NOTHROW(check_books(scenario, task->samples(), local.ledger, local.ledger.told()));
            const auto same = replay_text(local.log, scenario, *task);
            CHECK_MESSAGE(same.same, same.difference);
            REQUIRE(local.report.servers.size() == 1 + make_tree(scenario).relays().size());
            CHECK(local.report.servers[1].role == 6);
            CHECK(local.report.servers[1].bytes_in > 0);
            CHECK(local.report.servers[1].bytes_out > 0);
            if (!traits(make_policy(scenario.protocol, 5)).batch_order) continue;
            const auto simulated = simulate(scenario, task->samples(), {}, task.get());
            CHECK(local.report.weights_hash == simulated.report.weights_hash);
        }
}

TEST_CASE("local: a tree that broadcasts its weights ends, whether workers wait for them or not") {
    for (const auto pipeline : {Pipeline::blocking, Pipeline::overlap})
        for (const auto pull : {Pull::prefetch, Pull::latest})
            for (const auto sampling : {Sampling::shared_epoch, Sampling::strided}) {
                if (pipeline == Pipeline::blocking && pull == Pull::latest) continue;
                if (pull == Pull::latest && sampling == Sampling::shared_epoch) continue;
                auto scenario = small_training("async", 12, 4);
                scenario.topology = "tree";
                scenario.tree.fan_out = 2;
                scenario.tree.broadcast = true;
                scenario.workers.pipeline = pipeline;
                scenario.workers.pull = pull;
                scenario.data.sampling = sampling;
                scenario.stall_timeout_s = 5;
                const auto task = learn::make_task(scenario);
                CAPTURE(static_cast<int>(pipeline));
                CAPTURE(static_cast<int>(pull));
                CAPTURE(static_cast<int>(sampling));
                const auto local = run_here(scenario, *task);
                REQUIRE(local.report.status == Status::finished);
                const auto same = replay_text(local.log, scenario, *task);
                CHECK_MESSAGE(same.same, same.difference);
            }
}

TEST_CASE("local: weights that go from worker to worker are the root's, and the run replays") {
    for (const int fan_out : {1, 2, 8}) {
        auto scenario = small_training("n-softsync", 5, 16);
        scenario.topology = "tree-downcast";
        scenario.tree.fan_out = 2;
        scenario.tree.weights_fan_out = fan_out;
        scenario.workers.pipeline = Pipeline::overlap;
        scenario.workers.pull = Pull::latest;
        scenario.data.sampling = Sampling::strided;
        const auto task = learn::make_task(scenario);
        const auto local = run_here(scenario, *task);
        CAPTURE(fan_out);
        REQUIRE(local.report.status == Status::finished);
        auto books = scenario;
        books.stop = {};
        REQUIRE_NOTHROW(check_books(books, task->samples(), local.ledger, local.ledger.told()));
        const auto same = replay_text(local.log, scenario, *task);
        CHECK_MESSAGE(same.same, same.difference);
        std::int64_t pulls = 0;
        for (const auto& row : local.ledger.workers) pulls += row.pulls;
        CHECK(pulls > 0);
    }
}

TEST_CASE("local: a worker that passes weights on takes none of the server's time for it") {
    auto scenario = small_training("async", 5, 16);
    scenario.topology = "tree-downcast";
    scenario.tree.fan_out = scenario.tree.weights_fan_out = 2;
    scenario.workers.pipeline = Pipeline::overlap;
    scenario.workers.pull = Pull::latest;
    scenario.data.sampling = Sampling::strided;
    const auto task = learn::make_task(scenario);
    trace::EmulatedCosts costs;
    costs.slow.assign(5, 1);
    costs.servers[0].pull_s = 0.0005;
    const auto run = run_here(scenario, *task, nullptr, &costs);
    REQUIRE(run.report.status == Status::finished);
    const auto& server = run.report.servers[0];
    // The root sends each version to two of the workers, which pass it on to the rest.
    CHECK(server.replies > 0);
    CHECK(server.replies <= 2 * (static_cast<std::int64_t>(run.ledger.updates.size()) + 1));
    CHECK(server.pull_ns >= server.replies * 500'000);
    const auto same = replay_text(run.log, scenario, *task);
    CHECK_MESSAGE(same.same, same.difference);
}

TEST_CASE("local: with shards, hardsync ends with the weights of one simulated server, and every policy replays") {
    for (const char* protocol : {"hardsync", "bsp", "n-softsync", "async", "asp", "ssp", "dssp", "bounded-delay"})
        for (const int shards : {2, 5}) {
            auto scenario = small_training(protocol, 5, 16);
            scenario.protocol.bound = 1;
            scenario.evaluate.every_epochs = 0.5;
            const auto task = learn::make_task(scenario);
            const auto one = simulate(scenario, task->samples(), {}, task.get());
            scenario.topology = "sharded";
            scenario.shards = {shards, true, false};
            scenario.layers = learn::task_size(scenario).layers;
            const int used = make_shards(scenario, task->parameters()).used();
            const auto local = run_here(scenario, *task);
            CAPTURE(protocol);
            CAPTURE(shards);
            REQUIRE(local.report.status == Status::finished);
            REQUIRE_NOTHROW(check_shard_books(scenario, task->samples(), local.ledger, local.ledger.told(), used));
            const auto same = replay_text(local.log, scenario, *task);
            CHECK_MESSAGE(same.same, same.difference);
            REQUIRE(static_cast<int>(local.report.servers.size()) == shards);
            for (int shard = 0; shard < shards; ++shard) {
                const auto& server = local.report.servers[static_cast<std::size_t>(shard)];
                CHECK(server.role == (shard == 0 ? 0 : 5 + shard));
                CHECK((server.bytes_in > 0) == (shard < used));
                CHECK((server.updates > 0) == (shard < used));
            }
            if (!traits(make_policy(scenario.protocol, 5)).batch_order) continue;
            CHECK(local.report.weights_hash == one.report.weights_hash);
            CHECK(local.ledger.evals.size() == one.ledger.evals.size());
        }
}

TEST_CASE("local: workers of shards that overlap keep every book, and replay") {
    for (const char* protocol : {"n-softsync", "async"})
        for (const Pull pull : {Pull::prefetch, Pull::latest})
            for (const int shards : {1, 2, 5}) {
                auto scenario = small_training(protocol, 5, 16);
                scenario.workers.pipeline = Pipeline::overlap;
                scenario.workers.pull = pull;
                scenario.data.sampling = Sampling::strided;
                scenario.topology = "sharded";
                scenario.shards = {shards, false, false};
                const auto task = learn::make_task(scenario);
                const auto local = run_here(scenario, *task);
                CAPTURE(protocol);
                CAPTURE(shards);
                REQUIRE(local.report.status == Status::finished);
                auto told = scenario;
                if (pull == Pull::latest) told.stop = {};  // what ends an epoch may reach beyond it
                REQUIRE_NOTHROW(check_shard_books(told, task->samples(), local.ledger, local.ledger.told(), shards));
                const auto same = replay_text(local.log, scenario, *task);
                CHECK_MESSAGE(same.same, same.difference);
            }
}

TEST_CASE("local: every stop criterion ends the run") {
    auto scenario = small_training("async", 3, 16);
    const auto task = learn::make_task(scenario);
    scenario.stop = {};
    SUBCASE("updates") {
        scenario.stop.updates = 7;
    }
    SUBCASE("gradients") {
        scenario.stop.gradients = 5;
    }
    SUBCASE("seconds") {
        scenario.stop.seconds = 0.05;
    }
    SUBCASE("target") {
        scenario.stop.epochs = 50;
        scenario.stop.target = Target{"valid_error", 1.0};
        scenario.evaluate.mode = EvaluateSpec::Mode::rank;
    }
    CHECK(run_here(scenario, *task).report.status == Status::finished);
}

TEST_CASE("local: an interrupted run says so") {
    auto scenario = small_training("async", 2, 16);
    scenario.stop.epochs = 1e6;
    scenario.evaluate.every_epochs.reset();
    const auto task = learn::make_task(scenario);
    std::atomic<bool> interrupted{false};
    std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        interrupted = true;
    });
    CHECK(run_here(scenario, *task, &interrupted).report.status == Status::interrupted);
    later.join();
}

TEST_CASE("local: evaluations come in the order of their versions, the final one last") {
    const auto scenario = small_training("hardsync", 2, 30);
    const auto task = learn::make_task(scenario);
    for (int repeat = 0; repeat < 20; ++repeat) {
        const auto run = run_here(scenario, *task);
        REQUIRE(run.ledger.evals.size() == 4);
        for (std::size_t i = 1; i < 4; ++i) CHECK(run.ledger.evals[i - 1].version < run.ledger.evals[i].version);
        CHECK(run.ledger.evals.back().version == run.ledger.updates.back().version);
    }
}

TEST_CASE("local: a target ends the run, with pauses at the very evaluation that reaches it") {
    auto scenario = small_training("async", 3, 8);
    scenario.stop.epochs = 200;
    scenario.stop.target = Target{"valid_error", 1.0};
    scenario.evaluate.every_epochs = 1.3;
    bool pause = false;
    SUBCASE("beside the workers") {}
    SUBCASE("pause") {
        pause = true;
    }
    scenario.evaluate.mode = pause ? EvaluateSpec::Mode::pause : EvaluateSpec::Mode::rank;
    const auto task = learn::make_task(scenario);
    const auto run = run_here(scenario, *task);
    CHECK(run.report.status == Status::finished);
    CHECK(run.report.servers.front().evaluate_ns > 0);
    // The very first evaluation, of version 0, reaches it.
    if (pause)
        CHECK(run.ledger.updates.empty());
    else
        CHECK(run.ledger.updates.size() < 200 * 203 / 8);
}

TEST_CASE("local: a gradient that takes longer than the limit of a stall is no stall") {
    auto scenario = small_training("hardsync", 1, 60000);
    scenario.data.samples = 60000;
    scenario.data.shape = {28, 28, 1};
    scenario.model.hidden = {64};
    scenario.stop.epochs = 1;
    scenario.stall_timeout_s = 0.05;
    const auto task = learn::make_task(scenario);
    CHECK(run_here(scenario, *task).report.status == Status::finished);
}

TEST_CASE("local: messages over emulated links take their time, one after another in each direction") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"}) {
        Scenario scenario = small_training(protocol, 3, 10);
        scenario.stop.epochs = 1;
        const auto task = learn::make_task(scenario);
        trace::EmulatedCosts costs;
        costs.slow = {1, 1, 1};
        costs.push_bytes = 20'000;
        costs.pull_bytes = 10'000;
        costs.servers[0].pull_s = 1e-4;  // replies come from a lane
        costs.to_server.assign(3, {2e6, 0.002});
        costs.from_server.assign(3, {2e6, 0.001});
        exec::RunInput input;
        input.emulated = &costs;
        trace::RecorderOptions options;
        options.samples = task->samples();
        options.parameters = task->parameters();
        trace::Recorder recorder(scenario, options);
        Ledger ledger;
        std::mutex mutex;
        int pushes = 0, pulls = 0;
        input.scenario = &scenario;
        input.task = task.get();
        input.samples = task->samples();
        input.parameters = task->parameters();
        input.recorder = &recorder;
        input.observer = [&](Time now, RoleId, const Event& event, const Actions& actions) {
            const std::lock_guard lock(mutex);
            ledger.add(actions);
            const auto* delivered = std::get_if<Delivered>(&event);
            if (delivered == nullptr || delivered->payload.buffer == no_buffer) return;
            const bool push = delivered->channel == Channel::gradient;
            ++(push ? pushes : pulls);
            CHECK(delivered->started_ns >= delivered->sent_ns);
            CHECK(now - delivered->sent_ns >= (push ? 12'000'000 : 6'000'000));
        };
        CAPTURE(protocol);
        CHECK(exec::run_local(input).status == Status::finished);
        CHECK(pushes >= 19);
        CHECK(pulls > 0);
        CHECK(ledger.count(Outcome::applied) + ledger.count(Outcome::leftover) == pushes);
    }
}
