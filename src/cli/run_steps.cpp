#include "cli/run_steps.hpp"

#include "cli/backends.hpp"
#include "cli/complete_collective.hpp"
#include "cli/exit_status.hpp"
#include "cli/expression.hpp"
#include "cli/log.hpp"
#include "cli/run_directory.hpp"
#include "trace/plugin.hpp"
#include "trace/summary.hpp"

#include <cstdio>

namespace rubato::cli {
namespace {

/// Throws std::invalid_argument where the text is not a summary.
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
    require_sums(loaded, backend);
    const EmulateSpec& emulate = loaded.scenario.emulate;
    if (backend == "sim") {
        if (emulate.any())
            note("execution.emulate is for real runs; the simulation takes cost and cluster as they are");
        return;
    }
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
    if (loaded.tree.find("cost") && !emulate.compute && !emulate.messages && !emulate.network)
        note("cost and cluster are what a simulation charges; backend " + backend +
             " ignores them without execution.emulate");
    if (!loaded.scenario.faults.empty())
        note("faults are ignored: they are simulated only, and in backend " + backend + " nothing breaks by plan");
}

/// Self-contained, so that the same run leaves the same text wherever it was started: it repeats the run from inside
/// its directory.
std::string repeat_command(const Loaded& loaded, const std::string& backend) {
    std::string launcher;
    if (backend == "mpi") launcher = "mpirun -n " + std::to_string(ranks_needed(loaded.scenario)) + " ";
    return launcher + "rubato run scenario.json --backend " + backend + " --out again";
}

}  // namespace

Loaded load_for_run(const RunOptions& options) {
    if (options.force && options.resume)
        throw InputError("--force starts a run again and --resume goes on with it: expected one of them");
    std::vector<std::string> sets = options.sets;
    if (options.timeline) sets.emplace_back("trace.timeline=true");
    if (options.events) sets.emplace_back("trace.events=true");
    Loaded loaded = load_scenario(options.scenario, sets);
    for (const auto& text : loaded.notes) note(text);
    check_for_backend(loaded, options.backend);
    require_files(loaded);
    return loaded;
}

std::string directory_of(const RunOptions& options, const Loaded& loaded) {
    return options.directory.empty() ? default_directory(loaded, options.backend) : options.directory;
}

std::optional<int> report_earlier(const RunOptions& options, const Loaded& loaded, const std::string& directory) {
    const auto earlier = look_into(directory, loaded, options.backend, options.force, options.resume);
    if (!earlier) return std::nullopt;
    note(directory + " holds this run already (" + earlier->status + "); --force repeats it");
    try {
        print_summary(earlier->summary_json, directory, options);
    } catch (const std::invalid_argument& problem) {
        throw InputError(directory + "/summary.json: " + problem.what() + "; --force repeats the run");
    }
    return exit_of(earlier->status);
}

trace::RecorderOptions recorder_options(const RunOptions& options, const Loaded& loaded, const std::string& directory) {
    trace::RecorderOptions output;
    output.directory = directory;
    output.scenario_json = loaded.resolved_json;
    output.command = repeat_command(loaded, options.backend);
    output.samples = loaded.samples;
    output.parameters = loaded.parameters;
    return output;
}

trace::RunInput run_input(const Loaded& loaded, const learn::Task* task, trace::Recorder& recorder,
                          const std::atomic<bool>& interrupted) {
    trace::RunInput input;
    input.scenario = &loaded.scenario;
    input.task = task;
    input.samples = loaded.samples;
    input.parameters = loaded.parameters;
    input.recorder = &recorder;
    input.interrupted = &interrupted;
    input.remark = [](const std::string& text) { warn(text); };
    return input;
}

trace::DriverReport guarded_run(const RunOptions& options, const Loaded& loaded, const std::string& directory,
                                const std::function<trace::DriverReport()>& run) {
    const std::string left = " (" + directory + " holds what was written until then, without a summary)";
    try {
        return run();
    } catch (const ExpressionError& problem) {
        throw InputError(options.scenario + ": optimizer.staleness_rule: " + problem.what() + left);
    } catch (const trace::PluginError& problem) {
        throw InputError(options.scenario + ": " + problem.what() + left);
    } catch (const std::logic_error& problem) {
        // Of what a policy may order there is more than can be looked through.
        if (!loaded.scenario.protocol.plugin) throw;
        throw InputError(options.scenario + ": plugin " + loaded.tree.at("protocol").at("file").text +
                         " orders what cannot be done, such as to let go who has not pushed: " + problem.what() + left);
    } catch (const trace::OutputError& problem) {
        // The summary is small: where there is room for it after all, it says how the run ended.
        if (!problem.full) throw;
        trace::DriverReport report;
        report.backend = options.backend;
        report.virtual_clock = options.backend == "sim";
        report.status = Status::disk_full;
        report.detail = problem.what();
        return report;
    }
}

namespace {

/// The last rows may be those that the disk has no room for; the summary then says so in the room that is kept for it.
std::string finish(trace::Recorder& recorder, trace::DriverReport& report) {
    try {
        return recorder.finish(report);
    } catch (const trace::OutputError& problem) {
        if (!problem.full || report.status == Status::disk_full) throw;
        report.status = Status::disk_full;
        report.detail = problem.what();
        return recorder.finish(report);
    }
}

}  // namespace

int conclude(const RunOptions& options, const std::string& directory, trace::Recorder& recorder,
             trace::DriverReport report) {
    const std::string summary = finish(recorder, report);
    print_summary(summary, directory, options);
    const std::string status = status_of(summary);
    if (status == "finished" && recorder.progress().updates == 0)
        warn("the run finished without an update: no gradient was applied, so nothing was learnt");
    if (status != "finished") error("the run ended as " + status + (report.detail.empty() ? "" : ": " + report.detail));
    return exit_of(status);
}

}  // namespace rubato::cli
