#include "cli/recompute.hpp"

#include "cli/exit_status.hpp"
#include "cli/log.hpp"
#include "cli/progress_bar.hpp"
#include "cli/resume.hpp"
#include "cli/run_directory.hpp"
#include "cli/signals.hpp"
#include "sim/replay/retelling.hpp"
#include "sim/replay/same_schedule.hpp"
#include "trace/event_log.hpp"
#include "trace/summary.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

namespace rubato::cli {
namespace {

/// A message without payload, as simulation counts it.
constexpr std::int64_t control_bytes = 64;

/// Why a key cannot be set; empty where it can.
std::string reason_against(const std::string& key) {
    const std::string section = key.substr(0, key.find('.'));
    if (section == "optimizer" || key == "stop.diverged") return {};
    if (section == "evaluate") return "evaluations are done at the recorded versions";
    if (section == "stop") return "the recorded schedule has an end of its own; of stop only stop.diverged may be set";
    if (section == "seed" || section == "seeds" || section == "data" || section == "model")
        return "gradients would be those of another problem, not of another update rule; rubato run does that";
    if (section == "trace") return "the tables are those that the recorded run left, without timeline and events";
    return "it makes another schedule; rubato run does that";
}

void check_sets(const std::vector<std::string>& sets) {
    for (const auto& assignment : sets) {
        const auto equals = assignment.find('=');
        if (equals == std::string::npos || equals == 0) continue;  // the reader of the scenario says what is wrong
        const std::string key = assignment.substr(0, equals);
        const std::string reason = reason_against(key);
        if (!reason.empty())
            throw InputError(set_label(assignment) + ": " + key + " cannot be set in a replay, only optimizer... and " +
                             "stop.diverged can: " + reason);
    }
}

/// The recorded scenario with the other rule.
Loaded load_changed(const LoggedRun& run, std::vector<std::string> sets) {
    if (run.loaded.scenario.workers.communication.any())
        throw InputError(set_label(sets.front()) + ": the workers of " + run.directory +
                         " take steps of their own (workers.communication), at rates that the recorded messages carry: "
                         "rubato run computes such a run anew");
    if (run.loaded.scenario.protocol.averages() || run.loaded.scenario.protocol.reduces())
        throw InputError(set_label(sets.front()) + ": the workers of " + run.directory +
                         " take steps of their own, at rates that the recorded messages carry: rubato run computes "
                         "such a run anew");
    if (run.loaded.scenario.topology == "sharded")
        throw InputError(set_label(sets.front()) + ": the servers of " + run.directory +
                         " are sharded, for which this is not yet built: rubato run computes such a run anew");
    // Both tell of events in time, which nobody records here.
    sets.emplace_back("trace.events=false");
    sets.emplace_back("trace.timeline=false");
    Loaded loaded = load_scenario((std::filesystem::path(run.directory) / "scenario.json").string(), sets);
    for (const auto& text : loaded.notes) note(text);
    return loaded;
}

std::string quoted(const std::string& text) {
    if (text.find_first_of(" '\"\\$`{}[]()<>|&;*?!#~\t\n") == std::string::npos) return text;
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string absolute(const std::string& directory) {
    std::error_code error;
    const auto path = std::filesystem::weakly_canonical(directory, error);
    return error ? directory : path.string();
}

std::string repeat_command(const LoggedRun& run, const std::vector<std::string>& sets) {
    std::string text = "rubato replay " + quoted(absolute(run.directory));
    for (const auto& assignment : sets) text += " --set " + quoted(assignment);
    return text + " --out again";
}

sim::MessageSizes sizes_of(const LoggedRun& run, const Loaded& loaded) {
    if (run.backend == "sim") return {loaded.scenario.cost.push_bytes, loaded.scenario.cost.pull_bytes, control_bytes};
    const std::int64_t bytes = run.header.parameters * static_cast<std::int64_t>(sizeof(float));
    return {bytes, bytes, 0};
}

void require_free(const std::string& directory, const LoggedRun& run, bool force) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (fs::equivalent(directory, run.directory, error))
        throw InputError(directory + ": is the recorded run itself; --out names another folder");
    if (!fs::exists(directory, error)) return;
    if (!fs::is_directory(directory, error)) throw InputError(directory + ": is a file, expected a folder for the run");
    if (fs::is_empty(directory, error) || force) return;
    throw InputError(directory + ": is not empty; --force replaces its files, --out names another folder");
}

/// What the run had told when it was resumed is told again; the recorder cuts the tables to that.
void take_tables(const LoggedRun& run, const std::string& directory) {
    namespace fs = std::filesystem;
    const trace::CheckpointHead& head = run.checkpoint->head;
    note(fmt::format("{} was resumed at version {}: what is before stays as recorded", run.directory, head.version()));
    std::error_code error;
    fs::remove_all(trace::checkpoint_folder(directory), error);
    const trace::TableSizes& sizes = head.recorder.tables;
    const std::pair<const char*, std::int64_t> tables[] = {{"gradients.csv", sizes.gradients},
                                                           {"updates.csv", sizes.updates},
                                                           {"evals.csv", sizes.evals},
                                                           {"rounds.csv", sizes.rounds},
                                                           {"exchanges.csv", sizes.exchanges}};
    for (const auto& [name, size] : tables) {
        if (size < 0) continue;
        const fs::path from = fs::path(run.directory) / name;
        const auto there = fs::file_size(from, error);
        if (error || there < static_cast<std::uintmax_t>(size))
            throw InputError(from.string() + ": lacks rows from before the run was resumed, which stay as recorded; " +
                             fmt::format("expected at least {} bytes", size));
        fs::copy_file(from, fs::path(directory) / name, fs::copy_options::overwrite_existing, error);
        if (error) throw trace::OutputError("cannot write " + directory + "/" + name + ": " + error.message());
    }
}

/// Before anything is written: the log is whole, and the rule keeps to its schedule. Returns why the log differs.
std::string check_log(LoggedRun& run, const Loaded& changed) {
    Scenario scenario = run.loaded.scenario;
    const auto roles = recorded_roles(run, scenario);
    scenario.optimizer = changed.scenario.optimizer;
    auto others = recorded_roles(run, scenario);
    Actions actions;
    const auto result =
        trace::replay(run.log, roles, [&](Time now, RoleId role, const Event& event, const Actions& recorded) {
            actions.clear();
            step(others[static_cast<std::size_t>(role)], now, event, actions);
            sim::require_same_schedule(now, role, recorded, actions);
            return true;
        });
    if (std::string text = verdict(run, result); !text.empty()) return text;
    if (!result.complete) warn(run.log_path + " breaks off: the run did not end in order; what is there is computed");
    run.log.clear();
    run.log.seekg(0);
    return {};
}

trace::DriverReport compute(LoggedRun& run, const Loaded& changed, const learn::Task& task, trace::Recorder& recorder,
                            bool quiet) {
    const std::atomic<bool>& interrupted = watch_signals();
    const auto begin = std::chrono::steady_clock::now();
    const Scenario& scenario = changed.scenario;
    Scenario retold = run.loaded.scenario;
    retold.optimizer = scenario.optimizer;
    sim::Retelling retelling(recorded_roles(run, retold), scenario.stop.on_divergence, sizes_of(run, changed), recorder,
                             run.start());
    const auto& recorded = run.loaded.scenario.optimizer;
    // Arrays of the same length mean something else to another optimizer.
    const bool keeps_state = scenario.optimizer.name == recorded.name &&
                             scenario.optimizer.staleness_rule.kind == recorded.staleness_rule.kind;
    sim::Recomputation recomputation(scenario, task, {scenario.pool_threads, true, run.start(), keeps_state},
                                     retelling);
    ProgressBar bar(
        [&] {
            trace::Progress progress = recorder.progress();
            progress.fraction = run.fraction();
            return progress;
        },
        quiet);
    const auto result = replay_into(run, recomputation, [&] {
        bar.tick();
        return !recomputation.stopped() && !interrupted;
    });
    if (result.complete) recomputation.end();
    if (!recomputation.cut().empty()) throw sim::InconsistentLog(recomputation.cut());
    const auto hash = recomputation.weights_hash();
    retelling.close(recomputation);
    trace::DriverReport report = retelling.report();
    report.weights_hash = hash;
    report.backend = run.backend.empty() ? "sim" : run.backend;
    report.virtual_clock = run.virtual_clock;
    report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (interrupted && report.status == Status::finished) {
        report.status = Status::interrupted;
        report.detail = "stopped by a signal";
    }
    return report;
}

}  // namespace

int recompute(LoggedRun& run, const ReplayOptions& options) {
    check_sets(options.sets);
    const Loaded changed = load_changed(run, options.sets);
    const auto task = recorded_task(run);
    const std::string directory = options.directory.empty()
                                      ? default_directory(changed, "replay of " + absolute(run.directory))
                                      : options.directory;
    const DirectoryLock lock(directory);
    require_free(directory, run, options.force);
    try {
        if (const std::string text = check_log(run, changed); !text.empty()) {
            std::printf("%s\n", text.c_str());
            return exit_negative;
        }
    } catch (const sim::ScheduleChanged& problem) {
        throw InputError(run.log_path + ": " + problem.what());
    }

    trace::RecorderOptions output;
    output.directory = directory;
    output.scenario_json = changed.resolved_json;
    output.command = repeat_command(run, options.sets);
    output.samples = run.header.samples;
    output.parameters = run.header.parameters;
    output.one_thread = true;
    output.places = recorded_places(run);
    if (run.checkpoint) {
        take_tables(run, directory);
        output.resume = recorder_resume(*run.checkpoint);
    }
    output.recomputed =
        trace::RecomputedRun{absolute(run.directory), run.backend, run.status, run.weights_hash, options.sets};
    trace::DriverReport report;
    std::string summary;
    try {
        trace::Recorder recorder(changed.scenario, output);
        report = compute(run, changed, *task, recorder, options.quiet);
        summary = recorder.finish(report);
    } catch (const sim::InconsistentLog& problem) {
        std::printf("%s: differs: %s\n", run.log_path.c_str(), problem.what());
        return exit_negative;
    }
    if (options.json) std::fputs(summary.c_str(), stdout);
    if (!options.json && !options.quiet) std::fputs(trace::summary_table(summary, directory).c_str(), stdout);
    if (report.status == Status::finished) return exit_finished;
    error("the recomputation ended as " + std::string(name(report.status)) + ": " + report.detail);
    return exit_ended_otherwise;
}

}  // namespace rubato::cli
