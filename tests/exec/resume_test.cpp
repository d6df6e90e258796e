// The local backend saves and goes on, in real time.
#include "run_local.hpp"
#include "support/temporary_directory.hpp"
#include "trace/checkpoint_writer.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace rubato;
using namespace rubato::test;

namespace {

/// All rows in the tables of one folder, from the beginning or from its newest checkpoint.
struct Ending {
    trace::DriverReport report;
    std::string summary;
    Ledger ledger;
};

Ending run_in(const std::string& directory, const Scenario& scenario, const learn::Task& task,
              const trace::Checkpoint* resume) {
    trace::RecorderOptions options;
    options.directory = directory;
    options.scenario_json = "{}";
    options.samples = task.samples();
    options.parameters = task.parameters();
    options.places = exec::local_places(scenario);
    if (resume) options.resume = {resume->head.recorder, resume->head.roles.server.now_ns, "state"};
    trace::Recorder recorder(scenario, options);
    trace::CheckpointWriter writer(directory, {}, resume,
                                   [](const std::string& line) { throw std::runtime_error(line); });
    exec::RunInput input;
    input.checkpoints = &writer;
    input.resume = resume;
    Ending ending;
    ending.report = run_watched(scenario, task, recorder, input, ending.ledger);
    ending.summary = recorder.finish(ending.report);
    return ending;
}

std::optional<trace::Checkpoint> newest(const std::string& directory) {
    return trace::newest_checkpoint(directory, [](const std::string& line) { throw std::runtime_error(line); });
}

}  // namespace

TEST_CASE("local: a run goes on from a checkpoint that was written beside it, and counts nothing twice") {
    for (const char* protocol : {"hardsync", "n-softsync", "async"})
        for (const auto mode : {EvaluateSpec::Mode::deferred, EvaluateSpec::Mode::rank, EvaluateSpec::Mode::pause}) {
            CAPTURE(protocol);
            CAPTURE(static_cast<int>(mode));
            Scenario scenario = learning_scenario(protocol, 3, 7, "mlp", 203);
            scenario.stop.epochs = 4;
            scenario.evaluate.every_epochs = 0.5;
            scenario.evaluate.mode = mode;
            scenario.optimizer.name = "momentum";
            scenario.optimizer.momentum = 0.9;
            scenario.checkpoint.every_updates = 7;
            const auto task = learn::make_task(scenario);
            const TemporaryDirectory folder;
            const std::string directory = folder.path() / "run";
            const auto whole = run_in(directory, scenario, *task, nullptr);
            const auto from = newest(directory);
            REQUIRE(from);
            const auto& state = from->head.roles.server;
            const auto rest = run_in(directory, scenario, *task, &*from);
            REQUIRE(rest.report.status == Status::finished);
            if (scenario.protocol.name == "hardsync") CHECK(rest.report.weights_hash == whole.report.weights_hash);
            CHECK(rest.summary.find("\"samples\": 812") != std::string::npos);
            std::int64_t samples = state.samples;
            for (const auto& row : rest.ledger.gradients) samples += row.samples;
            CHECK(samples == 812);
            // Every evaluation once: those that were there, those that were pending, and new ones.
            const auto before =
                std::count_if(whole.ledger.evals.begin(), whole.ledger.evals.end(), [&](const auto& row) {
                    const auto& pending = state.evaluations;
                    return row.version <= state.version &&
                           std::none_of(pending.begin(), pending.end(),
                                        [&](const auto& it) { return it.row.version == row.version; }) &&
                           row.version <= state.evaluated;
                });
            CHECK(before + static_cast<std::int64_t>(rest.ledger.evals.size()) == 9);
            for (const auto& row : rest.ledger.workers) CHECK(row.sum_ns() >= state.now_ns);
        }
}

TEST_CASE("local: replicas go on from a checkpoint of one of them, with the state of its optimizer") {
    for (const char* protocol : {"allreduce", "layer-wise", "delayed"})
        for (const auto mode : {EvaluateSpec::Mode::deferred, EvaluateSpec::Mode::pause}) {
            CAPTURE(protocol);
            CAPTURE(static_cast<int>(mode));
            Scenario scenario = learning_scenario(protocol, 3, 7, "mlp", 203);
            scenario.protocol.collective.mode = scenario.protocol.name == "allreduce"    ? CollectiveMode::sync
                                                : scenario.protocol.name == "layer-wise" ? CollectiveMode::layer_wise
                                                                                         : CollectiveMode::delayed;
            scenario.layers = {17 * 7, 8 * 3};
            scenario.data.sampling = Sampling::strided;
            scenario.stop.epochs = 4;
            scenario.evaluate.every_epochs = 0.5;
            scenario.evaluate.mode = mode;
            scenario.optimizer.name = "momentum";
            scenario.optimizer.momentum = 0.9;
            scenario.checkpoint.every_updates = 7;
            const auto task = learn::make_task(scenario);
            const TemporaryDirectory folder;
            const std::string directory = folder.path() / "run";
            const auto whole = run_in(directory, scenario, *task, nullptr);
            const auto from = newest(directory);
            REQUIRE(from);
            const auto& state = from->head.roles.server;
            REQUIRE(state.version < static_cast<Version>(whole.ledger.updates.size()));
            REQUIRE(state.version < static_cast<Version>(whole.ledger.updates.size()));
            CHECK(from->velocity.size() == from->weights.size());
            const auto rest = run_in(directory, scenario, *task, &*from);
            REQUIRE(rest.report.status == Status::finished);
            if (scenario.protocol.name != "delayed") CHECK(rest.report.weights_hash == whole.report.weights_hash);
            CHECK(rest.ledger.updates.size() + static_cast<std::size_t>(state.version) == whole.ledger.updates.size());
            std::int64_t samples = state.samples;
            for (const auto& row : rest.ledger.gradients) samples += row.samples;
            CHECK(samples == 812);
            CHECK(rest.ledger.iterations.size() == 3 * rest.ledger.updates.size());
            for (const auto& row : rest.ledger.workers) CHECK(row.sum_ns() >= state.now_ns);
        }
}
