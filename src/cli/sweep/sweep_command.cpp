// rubato sweep: many points of one scenario, resumed by itself.
#include "cli/backends.hpp"
#include "cli/commands.hpp"
#include "cli/error.hpp"
#include "cli/estimate.hpp"
#include "cli/exit_status.hpp"
#include "cli/log.hpp"
#include "cli/signals.hpp"
#include "cli/sweep/check_platforms.hpp"
#include "cli/sweep/dispatcher.hpp"
#include "cli/sweep/estimate_points.hpp"
#include "cli/sweep/overridden.hpp"
#include "cli/sweep/ranks.hpp"
#include "cli/sweep/report.hpp"
#include "cli/sweep/sweep_directory.hpp"
#include "trace/line_file.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <unordered_map>

namespace rubato::cli {
namespace {

Shard parse_shard(const std::string& text) {
    if (text.empty()) return {};
    Shard shard;
    const char* end = text.data() + text.size();
    const auto number = std::from_chars(text.data(), end, shard.number);
    const bool slash = number.ec == std::errc() && number.ptr != end && *number.ptr == '/';
    const auto count = slash ? std::from_chars(number.ptr + 1, end, shard.count) : number;
    if (!slash || count.ec != std::errc() || count.ptr != end || shard.number < 1 || shard.number > shard.count)
        throw InputError("--shard " + text + ": expected I/N with I from 1 to N, such as 1/8");
    return shard;
}

void print_remarks(const Plan& plan) {
    constexpr int lines_max = 8;
    int lines = 0;
    for (const auto& [text, count] : plan.remarks) {
        if (++lines > lines_max) break;
        note(text + (count > 1 ? fmt::format(" (in {} settings)", count) : ""));
    }
    if (lines > lines_max) note(fmt::format("... and {} more remarks like these", plan.remarks.size() - lines_max));
    if (plan.merged > 0)
        note(
            fmt::format("{} settings are the same as an earlier one of their variant, since a key that is varied does "
                        "not go with it; they are run once",
                        plan.merged));
}

/// "budget: 4 values x 2 seeds = 8 tuning runs for each of 3 settings".
std::string budget_text(const Plan& plan) {
    if (!plan.sweep->tuning) return {};
    std::size_t least = ~std::size_t{0}, most = 0;
    for (const PlannedSetting& setting : plan.settings) {
        least = std::min<std::size_t>(least, setting.count);
        most = std::max<std::size_t>(most, setting.count);
    }
    const std::size_t seeds = plan.sweep->tuning->seeds.size();
    const std::string values = least == most ? std::to_string(most) : fmt::format("{} to {}", least, most);
    const std::string runs =
        least == most ? std::to_string(most * seeds) : fmt::format("{} to {}", least * seeds, most * seeds);
    return fmt::format("budget: {} values x {} seeds = {} tuning runs for each of {} settings{}\n", values, seeds, runs,
                       plan.settings.size(), least == most ? "" : " (unequal: some values do not apply to some)");
}

/// The setting of each point that the plan may come to. Only for tables that another sweep began.
std::unordered_map<std::uint64_t, SettingId> settings_of_points(const Plan& plan) {
    std::unordered_map<std::uint64_t, SettingId> all;
    const SweepFile& sweep = *plan.sweep;
    for (const PlannedSetting& setting : plan.settings) {
        for (std::uint32_t i = setting.first; i < setting.first + setting.count; ++i) {
            const PlannedChoice& choice = plan.choices[i];
            const auto add = [&](Phase phase, const std::vector<std::int64_t>& seeds) {
                for (const std::int64_t seed : seeds)
                    all[identity_of(choice.content, plan.label(setting), phase, seed)] = {setting.setting,
                                                                                          choice.choice};
            };
            add(Phase::report, sweep.seeds);
            if (sweep.tuning) add(Phase::tune, sweep.tuning->seeds);
        }
    }
    return all;
}

/// Makes or opens the table; rows of an earlier sweep that are points of this one get the cells that they lack.
void open_table(Results& results, Claims& claims, const Plan& plan, Resolver& resolver, const std::string& directory,
                bool changed) {
    std::optional<std::unordered_map<std::uint64_t, SettingId>> points;
    const auto swept = [&](std::uint64_t identity) -> const std::vector<std::string>* {
        if (!points) points = settings_of_points(plan);
        const auto found = points->find(identity);
        return found == points->end() ? nullptr : &resolver.at(found->second).cells;
    };
    if (results.open_for_writing(claims, swept, changed))
        note(directory + "/results.csv: columns were added for keys that are new");
}

/// Everything that lies in the directory, taken in. `retry`: failed points count as to be run.
struct Picture {
    Picture(const Plan& plan, Resolver& resolver, const std::string& directory, bool retry = false)
        : board(plan, resolver, {}), results(directory, result_columns(*plan.sweep)) {
        results.read_new([this, retry](const ResultRow& row) {
            table.take(results, row);
            retry ? board.take_earlier(results, row) : board.take_later(results, row);
        });
        board.begin();
    }
    Board board;
    Results results;
    ResultTable table;
};

/// For readers of results.csv, where rows of other points may stand too.
void write_points(const std::vector<std::uint64_t>& identities, const std::string& directory) {
    std::string text;
    for (const std::uint64_t identity : identities) text += identity_text(identity) + '\n';
    trace::write_file_by_rename(directory + "/points.txt", text);
}

void write_aggregate(const Plan& plan, Resolver& resolver, const Picture& picture, const std::string& directory,
                     Claims& claims) {
    const std::string text = aggregate_text(*plan.sweep, summarize(picture.board, resolver, picture.table));
    const Claims::Writing lock(claims);
    write_points(picture.board.identities(), directory);
    trace::write_file_by_rename(directory + "/aggregate.csv", text);
}

int dry_run(const Plan& plan, Resolver& resolver, const std::string& directory, const SweepOptions& options) {
    const Picture picture(plan, resolver, directory, true);
    const SweepEstimate whole = estimate_points(plan, resolver);
    const std::size_t points = picture.board.total();
    const std::size_t left = points - picture.board.skipped();
    const double part = points > 0 ? static_cast<double>(left) / static_cast<double>(points) : 0;
    const auto text = [](std::size_t count) { return count_text(static_cast<double>(count)); };
    fmt::print("{:<12}{}, of {} settings x {} seeds{}\n", "points", text(points), text(plan.settings.size()),
               plan.sweep->seeds.size(), plan.sweep->tuning ? ", and tuning" : "");
    for (std::size_t i = 0; i < plan.sweep->variants.size(); ++i)
        fmt::print("{:<12}{}: {} settings\n", i == 0 ? "variants" : "", plan.sweep->variants[i].label,
                   text(plan.settings_of_variant[i]));
    if (plan.left_out > 0) fmt::print("{:<12}{} settings, by \"where\"\n", "left out", text(plan.left_out));
    fmt::print("{}", budget_text(plan));
    fmt::print("{:<12}{} are done in {}; {} would be tried again after a failure; {} are to run\n", "skipped",
               text(picture.board.skipped()), directory, text(picture.board.retried()), text(left));
    fmt::print("{:<12}roughly {} with {} processes here{}\n", "time", seconds_text(part * whole.seconds / options.jobs),
               options.jobs, whole.partly ? ", without the runs that only time or a target ends" : "");
    fmt::print("{:<12}about {} of results.csv{}\n", "disk", bytes_text(part * whole.table_bytes),
               options.keep ? " and " + bytes_text(part * whole.kept_bytes) + " of run directories" : "");
    return exit_finished;
}

/// --best without anything to compare is a wrong folder more often than an early question.
void require_finished(const std::vector<SettingSummary>& settings, const Board& board, const std::string& directory) {
    for (const SettingSummary& setting : settings)
        if (setting.n > 0) return;
    std::string why = "has no finished point of this sweep's report, so none is best";
    if (!holds_sweep(directory))
        why += "; there is no results.csv: expected the folder that the sweep ran in (--out)";
    else if (board.done() > 0)
        why += fmt::format("; the {} points that ended there did not finish or are of the tuning", board.done());
    else if (board.of_others() > 0)
        why += fmt::format("; {} rows are of other points", board.of_others());
    throw InputError(directory + ": " + why);
}

int show_status(const Plan& plan, Resolver& resolver, const std::string& directory, const SweepOptions& options) {
    const Picture picture(plan, resolver, directory);
    if (options.best > 0) {
        const auto settings = summarize(picture.board, resolver, picture.table);
        require_finished(settings, picture.board, directory);
        const auto text = options.json ? best_json : best_text;
        fmt::print("{}", text(*plan.sweep, settings, options.by, options.best));
        return exit_finished;
    }
    if (holds_sweep(directory)) {
        try {
            Claims claims(directory);
            write_aggregate(plan, resolver, picture, directory, claims);
        } catch (const trace::OutputError& error) {
            warn(std::string("aggregate.csv is left as it is: ") + error.what());
        }
    }
    fmt::print("{}", options.json ? counts_json(picture.board, directory, 0) : counts_text(picture.board, directory));
    if (!options.json) fmt::print("{}", picks_text(picture.board, resolver, 20));
    for (const auto& text : pick_warnings(picture.board, resolver)) warn(text);
    return exit_finished;
}

/// Runs what is left. Returns whether it came to its end; false after a signal.
bool run_points(Board& board, Resolver& resolver, Results& results, Claims& claims, const SweepOptions& options,
                const std::string& directory, const std::atomic<bool>& interrupted) {
    DispatchOptions dispatch;
    dispatch.jobs = options.jobs;
    dispatch.interrupted = &interrupted;
    dispatch.point.threads = std::max(1, usable_cores() / options.jobs);
    if (options.keep) dispatch.point.runs = directory + "/runs";
    SweepProgress progress(!options.quiet);
    Dispatcher* running = nullptr;
    dispatch.tick = [&] { progress.tick(board, running->running()); };
    Dispatcher dispatcher(board, resolver, results, claims, dispatch);
    running = &dispatcher;
    return dispatcher.run();
}

int run_sweep(const Plan& plan, Resolver& resolver, const std::string& directory, const SweepOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    const std::atomic<bool>& interrupted = watch_signals();
    if (!holds_sweep(directory)) check_platforms(plan, resolver);
    const bool changed = enter_sweep_directory(directory, *plan.sweep);
    if (changed) note(directory + "/sweep.json: the sweep has changed since");
    Claims claims(directory);
    Results results(directory, result_columns(*plan.sweep));
    open_table(results, claims, plan, resolver, directory, changed);
    Board board(plan, resolver, parse_shard(options.shard));
    {
        // Before the first row: a kill must not leave the list of an earlier version of the sweep.
        const Claims::Writing lock(claims);
        write_points(board.possible(), directory);
    }
    results.read_new([&](const ResultRow& row) { board.take_earlier(results, row); });
    board.begin();
    if (board.skipped() > 0) note(fmt::format("{} points are done already", board.skipped()));
    if (board.retried() > 0) note(fmt::format("{} failed points are tried again", board.retried()));
    if (const auto others = board.of_others())
        note(fmt::format("{} rows of results.csv are of other points: they stay, and aggregate.csv leaves them out",
                         others));
    if (board.done() < board.total()) load_simgrid(plan);
    if (!options.quiet && !options.json) fmt::print("{}", budget_text(plan));
    std::fflush(stdout);
    bool ended = false;
    try {
        ended = run_points(board, resolver, results, claims, options, directory, interrupted);
    } catch (const trace::OutputError& problem) {
        if (!problem.full) throw;
        error(
            fmt::format("the sweep ended as disk_full: {}; {} of {} points are done, the same command goes on from "
                        "there",
                        problem.what(), board.done(), board.total()));
        return exit_ended_otherwise;
    }
    if (board.superseded() > 0 || results.has_broken()) results.drop_superseded(claims);
    const Picture picture(plan, resolver, directory);
    write_aggregate(plan, resolver, picture, directory, claims);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (options.json) fmt::print("{}", counts_json(board, directory, seconds));
    if (!options.json && !options.quiet) {
        fmt::print("{}{}", picks_text(board, resolver, 20), counts_text(board, directory));
        fmt::print("{} s, {:.4g} points/s\n", fmt::format("{:.2f}", seconds),
                   static_cast<double>(board.done() - board.skipped()) / seconds);
    }
    for (const auto& text : pick_warnings(picture.board, resolver)) warn(text);
    if (!ended) {
        error(
            fmt::format("the sweep ended as interrupted: {} of {} points are done, the same command goes on from "
                        "there",
                        board.done(), board.total()));
        return exit_ended_otherwise;
    }
    const auto failed = board.count(PointState::failed);
    if (failed > 0) error(fmt::format("{} points failed; results.csv says why, in status_detail", failed));
    return failed > 0 ? exit_negative : exit_finished;
}

}  // namespace

int sweep_command(const SweepOptions& given) {
    SweepOptions options = given;
    const Rank rank = find_rank();
    // Ranks share the work through the folder; one of them speaks.
    if (rank.number > 0) options.quiet = true, options.json = false;
    if (options.quiet) be_quiet();
    if (options.jobs == 0) options.jobs = std::max(1, usable_cores() / rank.on_host);
    if (options.jobs < 1 || options.jobs > 4096)
        throw InputError("-j " + std::to_string(options.jobs) + ": expected a number of processes from 1 to 4096");
    if ((options.best > 0) != !options.by.empty()) throw InputError("--best K and --by KEY go together");
    if (!options.by.empty()) figure_named(options.by, "--by");
    parse_shard(options.shard);
    const SweepFile sweep = read_sweep(options.sweep, options.sets);
    Resolver resolver(sweep);
    const Plan plan = make_plan(sweep, resolver);
    for (const auto& text : overridden_sets(sweep, options.sets)) warn(text);
    for (std::size_t i = 0; i < sweep.variants.size(); ++i)
        if (plan.settings_of_variant[i] == 0)
            warn("where: \"" + sweep.where + "\" leaves no point of variant \"" + sweep.variants[i].label +
                 "\" (a key that a point lacks compares as false)");
    const std::string directory = options.directory.empty() ? default_sweep_directory(sweep) : options.directory;
    print_remarks(plan);
    if (options.dry_run) return dry_run(plan, resolver, directory, options);
    if (options.status || options.best > 0) return show_status(plan, resolver, directory, options);
    return run_sweep(plan, resolver, directory, options);
}

}  // namespace rubato::cli
