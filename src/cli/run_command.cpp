// rubato run: from a scenario to a run directory.
#include "cli/backends.hpp"
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/expression.hpp"
#include "cli/load.hpp"
#include "cli/log.hpp"
#include "cli/progress_bar.hpp"
#include "cli/run_directory.hpp"
#include "cli/signals.hpp"
#include "learn/task.hpp"
#include "trace/summary.hpp"

#include <cstdio>

namespace rubato::cli {
namespace {

void print_summary(const std::string& summary_json, const std::string& directory, const RunOptions& options) {
    const bool table = !options.json && !options.quiet;
    if (options.json) std::fputs(summary_json.c_str(), stdout);
    if (table) std::fputs(trace::summary_table(summary_json, directory).c_str(), stdout);
}

int exit_of(const std::string& status) {
    return status == "finished" ? exit_finished : exit_ended_otherwise;
}

/// Real execution computes gradients; what only a simulated machine is charged with plays no part in it.
void check_for_backend(const Loaded& loaded, const std::string& backend) {
    if (backend == "sim") return;
    if (const Node* schedule = loaded.tree.find("schedule")) {
        throw InputError(schedule->where, "schedule",
                         "gives the order of the updates, which backend " + backend +
                             " makes by itself: only backend sim follows a schedule");
    }
    if (!loaded.scenario.model.gradients) {
        throw InputError(loaded.tree.where, "model",
                         "backend " + backend +
                             " computes real gradients, but the scenario is "
                             "timing only: name a model with \"gradients\": \"real\"");
    }
    if (loaded.tree.find("cost"))
        note("cost and cluster are what a simulation charges; backend " + backend + " ignores them");
}

/// Self-contained, so that the same run leaves the same text wherever it was started: it repeats the run from inside
/// its directory.
std::string repeat_command(const std::string& backend) {
    return "rubato run scenario.json --backend " + backend + " --out again";
}

}  // namespace

int run_command(const RunOptions& options) {
    if (options.quiet) be_quiet();
    const std::atomic<bool>& interrupted = watch_signals();
    require_backend(options.backend);
    std::vector<std::string> sets = options.sets;
    if (options.timeline) sets.emplace_back("trace.timeline=true");
    if (options.events) sets.emplace_back("trace.events=true");
    const Loaded loaded = load_scenario(options.scenario, sets);
    for (const auto& text : loaded.notes) note(text);
    check_for_backend(loaded, options.backend);
    const Scenario& scenario = loaded.scenario;

    const std::string directory =
        options.directory.empty() ? default_directory(loaded, options.backend) : options.directory;
    const DirectoryLock lock(directory);
    if (const auto earlier = look_into(directory, loaded, options.backend, options.force)) {
        note(directory + " holds this run already (" + earlier->status + "); --force repeats it");
        print_summary(earlier->summary_json, directory, options);
        return exit_of(earlier->status);
    }
    require_files(loaded);

    // All that may be wrong with the input comes before the first file is written.
    trace::RecorderOptions output;
    output.directory = directory;
    output.scenario_json = loaded.resolved_json;
    output.command = repeat_command(options.backend);
    output.samples = loaded.samples;
    output.parameters = loaded.parameters;
    const auto backend = open_backend(options.backend, scenario);
    for (const auto& text : backend->warnings()) warn(text);
    output.places = backend->places();
    output.one_thread = backend->one_thread();
    const auto task = scenario.model.gradients ? learn::make_task(scenario) : nullptr;

    trace::Recorder recorder(scenario, output);
    trace::RunInput input;
    input.scenario = &scenario;
    input.task = task.get();
    input.samples = loaded.samples;
    input.parameters = loaded.parameters;
    input.recorder = &recorder;
    input.interrupted = &interrupted;
    trace::DriverReport report;
    try {
        ProgressBar bar(recorder, options.quiet);
        input.tick = [&bar] { bar.tick(); };
        report = backend->run(input);
    } catch (const ExpressionError& problem) {
        throw InputError(options.scenario + ": optimizer.staleness_rule: " + problem.what() + " (" + directory +
                         " holds what was written until then, without a summary)");
    } catch (const trace::OutputError& problem) {
        // The summary is small: where there is room for it after all, it says how the run ended.
        if (!problem.full) throw;
        report = {};
        report.backend = options.backend;
        report.virtual_clock = options.backend == "sim";
        report.status = Status::disk_full;
        report.detail = problem.what();
    }
    const std::string summary = recorder.finish(report);
    print_summary(summary, directory, options);
    const std::string status = status_of(summary);
    if (status != "finished") error("the run ended as " + status + (report.detail.empty() ? "" : ": " + report.detail));
    return exit_of(status);
}

}  // namespace rubato::cli
