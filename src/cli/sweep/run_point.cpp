#include "cli/sweep/run_point.hpp"

#include "cli/backends.hpp"
#include "learn/task.hpp"

#include <new>

namespace rubato::cli {
namespace {

std::string run(const Setting& setting, const Task& task, const PointOptions& options) {
    Scenario scenario = with_seed(setting.loaded, task.seed);
    if (scenario.pool_threads == 0) scenario.pool_threads = options.threads;
    const auto learning = scenario.model.gradients ? learn::make_task(scenario) : nullptr;
    const auto backend = open_backend("sim", scenario);
    trace::RecorderOptions output;
    output.samples = setting.loaded.samples;
    output.parameters = setting.loaded.parameters;
    output.one_thread = backend->one_thread();
    const bool keep = !options.runs.empty();
    if (keep) {
        output.directory = options.runs + "/" + identity_text(task.identity);
        Node tree = setting.loaded.tree;
        tree.set("seed", Node::of(task.seed), {});
        output.scenario_json = to_json(tree);
        output.command = "rubato run scenario.json --backend sim --out again";
        output.places = backend->places();
    }
    trace::Recorder recorder(scenario, output);
    trace::RunInput input;
    input.scenario = &scenario;
    input.task = learning.get();
    input.samples = setting.loaded.samples;
    input.parameters = setting.loaded.parameters;
    input.recorder = &recorder;
    const trace::DriverReport report = backend->run(input);
    if (keep) recorder.finish(report);
    std::string status(name(report.status)), detail = report.detail;
    // A run that diverged is a result; one that could not go on is none.
    if (report.status != Status::finished && report.status != Status::diverged) {
        detail = status + (detail.empty() ? "" : ": " + detail);
        status = "failed";
    }
    return result_row(setting, task.phase, task.seed, task.identity, status, detail, recorder.cells(report));
}

}  // namespace

std::string failed_row(const Setting& setting, const Task& task, const std::string& reason) {
    return result_row(setting, task.phase, task.seed, task.identity, "failed", reason, "");
}

PointResult run_point(const Setting& setting, const Task& task, const PointOptions& options) {
    std::string reason;
    try {
        return {PointResult::Kind::row, run(setting, task, options)};
    } catch (const trace::OutputError& error) {
        return {error.full ? PointResult::Kind::output_full : PointResult::Kind::output_error, error.what()};
    } catch (const std::bad_alloc&) {
        reason = "out of memory";
    } catch (const std::exception& error) {
        reason = error.what();
    }
    return {PointResult::Kind::row, failed_row(setting, task, reason)};
}

}  // namespace rubato::cli
