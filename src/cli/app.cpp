// The only file that sees CLI11.
#include "cli/app.hpp"

#include "cli/backends.hpp"
#include "cli/commands.hpp"
#include "cli/compare/sides.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/footers.hpp"
#include "cli/suggest.hpp"
#include "cli/sweep/ranks.hpp"
#include "trace/environment.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace rubato::cli {
namespace {

struct Arguments {
    RunOptions run;
    SweepOptions sweep;
    CompareOptions compare;
    std::vector<std::string> sides;  ///< of compare (cli/compare/sides.hpp)
    CalibrateOptions calibrate;
    std::string topic;
    ReplayOptions replay;
    std::string file = "scenario.json";
    std::string protocol = "n-softsync";
    std::string hostfile;
    bool force = false;
    bool schema = false;
};

/// Values of --set begin with a key, so that nothing in them is taken for another value or a list.
void add_sets(CLI::App& command, std::vector<std::string>& sets) {
    command
        .add_option("--set", sets,
                    "give KEY of the scenario, such as protocol.n, this VALUE: JSON, or a word. May be repeated; "
                    "`rubato help KEY` tells about a key")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
}

void declare_run(CLI::App& app, RunOptions& options) {
    std::string names;
    for (const auto& backend : backends()) {
        if (backend.built) names += (names.empty() ? "" : "; ") + std::string(backend.name) + ": " + backend.what;
    }
    CLI::App* run = app.add_subcommand("run", "runs a scenario and leaves a run directory");
    run->add_option("SCENARIO", options.scenario, "scenario file (JSON; docs/scenario.md, `rubato init` writes one)");
    run->add_option("--backend", options.backend, names + " (default: " + options.backend + ")")->type_name("NAME");
    run->add_option("--out", options.directory,
                    "run directory (default: runs/NAME-HASH, by the scenario's name and content). A finished run of "
                    "the same scenario is reported, not repeated")
        ->type_name("DIR")
        ->check(
            [](const std::string& text) { return std::string(text.empty() ? "expected the name of a folder" : ""); });
    add_sets(*run, options.sets);
    run->add_flag("--timeline", options.timeline,
                  "also write timeline.csv, what every role did when (default: as trace.timeline says, no)");
    run->add_flag("--events", options.events,
                  "also write events.log, for rubato replay (default: as trace.events says, no)");
    run->add_flag("--json", options.json, "print summary.json (default: a table of its main figures)");
    run->add_flag("--quiet", options.quiet, "print errors only: no table, notes or progress");
    run->add_flag("--force", options.force, "repeat a run that is there, or write into a folder that is not empty");
    run->add_flag(
        "--resume", options.resume,
        "go on from the newest valid checkpoint in the run directory (execution.checkpoint says when they are "
        "made), with a longer stop if you like; what was in flight is computed again and counts once. Begins "
        "where the directory holds no run yet, or one that was killed before its first checkpoint");
}

void declare_sweep(CLI::App& app, SweepOptions& options) {
    CLI::App* sweep = app.add_subcommand(
        "sweep", "runs a scenario at many points (variants, values, seeds), resumes by itself, and sums up");
    sweep->add_option("SWEEP", options.sweep, "sweep file (JSON; docs/sweeps.md)");
    add_sets(*sweep, options.sets);
    sweep
        ->add_option("--out", options.directory,
                     "folder for results.csv, aggregate.csv and sweep.json (default: runs/NAME-HASH, by the sweep's "
                     "name and its base scenario). Points that are done there are not repeated; failed ones are")
        ->type_name("DIR")
        ->check(
            [](const std::string& text) { return std::string(text.empty() ? "expected the name of a folder" : ""); });
    sweep->add_option("-j,--jobs", options.jobs, "processes that run points (default: the cores that may be used)")
        ->type_name("N");
    sweep
        ->add_option("--shard", options.shard,
                     "work on the I-th of N parts only, for job arrays; all parts may write into one folder")
        ->type_name("I/N");
    sweep->add_flag("--dry-run", options.dry_run, "tell the number of points, time and disk; run nothing");
    sweep->add_flag("--status", options.status, "tell what is done and write aggregate.csv; run nothing");
    sweep->add_option("--best", options.best, "print the best K settings by the mean over their seeds; run nothing")
        ->type_name("K")
        ->check([](const std::string& text) {
            const bool number = !text.empty() && text.size() < 7 && text.find_first_not_of("0123456789") == text.npos;
            return std::string(number && std::stoi(text) > 0 ? "" : "expected a number of settings of at least 1");
        });
    sweep->add_option("--by", options.by, "the figure of --best, a column of results.csv such as time_to_target_s")
        ->type_name("KEY");
    sweep->add_flag("--keep", options.keep, "also leave a run directory for each point that runs, DIR/runs/POINT");
    sweep->add_flag("--json", options.json, "print counts (or the best settings) as JSON");
    sweep->add_flag("--quiet", options.quiet, "print errors only: no table, notes or progress");
    sweep->allow_extras();
}

void declare_compare(CLI::App& app, CompareOptions& options, std::vector<std::string>& sides) {
    CLI::App* compare = app.add_subcommand(
        "compare", "lays predicted runs beside measured ones, SIM... -- REAL..., and says why they differ");
    compare
        ->add_option("SIM... -- REAL", sides,
                     "run directories; of several on a side (seeds) the means are compared. Both sides may be of any "
                     "backend, also simulations both")
        ->expected(-1)
        ->type_name(" ");
    compare->add_flag("--explain", options.explain,
                      "divide the gap in seconds per gradient among causes and workers (default: figures only)");
    compare
        ->add_option("--substitute", options.substitute,
                     "simulate the predicted runs again with this part (compute, network or server) as the measured "
                     "ones had it, and tell how much of the gap that closes; may be repeated")
        ->type_name("PART")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    compare
        ->add_option("--max", options.limits,
                     "exit with status 1 where the size of the relative error of FIGURE is above LIMIT, 0.1 for 10 %; "
                     "may be repeated; the figures are below")
        ->type_name("FIGURE=LIMIT")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    compare
        ->add_option("--timeline", options.timeline,
                     "also write both timelines (rubato run --timeline) into one Chrome trace, for Perfetto")
        ->type_name("FILE");
    compare->add_flag("--json", options.json, "all of it as JSON (default: tables)");
    compare->add_option("-o,--output", options.output, "where to write it (default: standard output)")
        ->type_name("FILE");
    compare->footer(compare_footer());
    compare->allow_extras();
}

void declare_calibrate(CLI::App& app, CalibrateOptions& options) {
    CLI::App* calibrate = app.add_subcommand(
        "calibrate",
        "writes a profile of a machine, which cluster.profile reads: measured here, from a run, or from tables");
    calibrate->add_option("SCENARIO", options.scenario,
                          "measure this machine with the model, batch size and workers of a scenario (JSON)");
    add_sets(*calibrate, options.sets);
    calibrate->add_option("--seconds", options.seconds, "time limit of a measurement (default: 60)")->type_name("S");
    calibrate->add_option("--run", options.run, "take the figures from the tables of a run, on any backend")
        ->type_name("DIR");
    calibrate
        ->add_option("--timings", options.timings,
                     "take compute times from a table device,batch,seconds (CSV, a gradient a row)")
        ->type_name("FILE");
    calibrate
        ->add_option("--network", options.network,
                     "fit latency and bandwidth to a table bytes,seconds (CSV, a message a row)")
        ->type_name("FILE");
    calibrate->add_option("--out", options.out, "file to write (default: NAME.profile.json, by the name of the source)")
        ->type_name("FILE");
    calibrate->add_flag("--force", options.force, "replace a file that exists");
    calibrate->add_flag("--quiet", options.quiet, "print errors only: no table and notes");
    calibrate->allow_extras();
}

void declare_replay(CLI::App& app, ReplayOptions& options) {
    CLI::App* replay = app.add_subcommand(
        "replay", "feeds the recorded events of a run through fresh roles, and on request computes it again");
    replay->add_option("RUN", options.run, "run directory with events.log (rubato run --events)");
    replay->add_flag("--weights", options.weights,
                     "also compute: losses and final weights must be those of the run, bit for bit (default: no "
                     "gradient is computed, and the data set need not be at hand)");
    replay->add_flag("--evaluate", options.evaluate, "with --weights: evaluations, too");
    replay
        ->add_option("--set", options.sets,
                     "compute the SAME schedule (order, staleness, times) under another update rule: give KEY, "
                     "optimizer... or stop.diverged, this VALUE. May be repeated. Leaves a run directory")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    replay->add_option("--out", options.directory, "with --set: run directory (default: runs/NAME-HASH)")
        ->type_name("DIR")
        ->check(
            [](const std::string& text) { return std::string(text.empty() ? "expected the name of a folder" : ""); });
    replay->add_flag("--json", options.json, "with --set: print summary.json (default: a table of its main figures)");
    replay->add_flag("--force", options.force, "with --set: write into a folder that is not empty");
    replay->add_flag("--quiet", options.quiet, "no table, notes, warnings or progress");
    replay->allow_extras();
}

void declare_small(CLI::App& app, Arguments& arguments) {
    CLI::App* init = app.add_subcommand("init", "writes a small scenario, with comments, that runs as it is");
    init->add_option("FILE", arguments.file, "file to write; - is stdout (default: " + arguments.file + ")");
    init->add_option("--protocol", arguments.protocol,
                     "protocol, one of `rubato list protocols` (default: " + arguments.protocol + ")")
        ->type_name("NAME");
    init->add_flag("--force", arguments.force, "replace a file that exists");

    CLI::App* check = app.add_subcommand("check", "checks a scenario and explains it, without running it");
    check->add_option("SCENARIO", arguments.run.scenario, "scenario file (JSON)");
    add_sets(*check, arguments.run.sets);
    check
        ->add_option(
            "--hostfile", arguments.hostfile,
            "file of hosts for a real run (NAME, NAME slots=N or NAME:N a line): tells which ranks go where and "
            "how to start them (default: this host)")
        ->type_name("FILE");

    CLI::App* list = app.add_subcommand("list", "lists " + one_of(list_topics(), "and"));
    list->add_option("TOPIC", arguments.topic, one_of(list_topics()) + " (default: all of them)");

    CLI::App* plot = app.add_subcommand(
        "plot", "draws a figure of runs and sweeps: KIND RUN_OR_SWEEP... [-o FILE], with KIND " + one_of(plot_kinds()));
    plot->prefix_command();

    CLI::App* table = app.add_subcommand(
        "table", "mean, 95 % confidence interval and n of the settings of sweeps, as text, CSV or LaTeX: SWEEP...");
    table->prefix_command();

    CLI::App* help = app.add_subcommand("help", "tells about a command, a key of scenarios or a name");
    help->add_option("TOPIC", arguments.topic,
                     "a command; a key such as protocol.n; a section such as cluster; a name such as inverse-n; "
                     "`scenario` for all sections (default: this program as a whole)");
    help->add_flag("--schema", arguments.schema, "print the JSON Schema of scenarios, for editors");
    for (CLI::App* command : {init, check, list, help}) command->allow_extras();
}

/// Breaks lines so that help fits a terminal of 120 columns beside the names of the options.
std::string wrapped(const std::string& text) {
    constexpr std::size_t columns = 88;
    std::string out, line;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        if (!line.empty() && line.size() + 1 + word.size() > columns) {
            out += line + "\n";
            line.clear();
        }
        line += (line.empty() ? "" : " ") + word;
    }
    return out + line;
}

void declare(CLI::App& app, Arguments& arguments) {
    app.set_version_flag("--version", "rubato " + trace::program_version() + " (" + trace::program_revision() + ")",
                         "print version and revision");
    // What is not known is told by our own messages, with suggestions.
    app.allow_extras();
    // One command a call: a second name of a command is a topic of help, or a file.
    app.require_subcommand(0, 1);
    declare_run(app, arguments.run);
    declare_sweep(app, arguments.sweep);
    declare_compare(app, arguments.compare, arguments.sides);
    declare_calibrate(app, arguments.calibrate);
    declare_replay(app, arguments.replay);
    declare_small(app, arguments);
    app.get_subcommand("run")->allow_extras();
    app.set_help_flag("-h,--help", "print this; COMMAND --help tells the options of a command");
    for (CLI::App* command : app.get_subcommands({})) {
        command->set_help_flag("-h,--help", "print this");
        if (command->get_name() != "compare") command->footer(footer_of(command->get_name()));
        command->description(wrapped(command->get_description()));
        for (CLI::Option* option : command->get_options()) option->description(wrapped(option->get_description()));
    }
    app.footer(
        "Exit status:\n"
        "  0   done; of a run: it finished\n"
        "  1   a negative verdict: a replay differs, a comparison is beyond its limits, a sweep has failed\n"
        "      points\n"
        "  2   the input is wrong, or an output cannot be written; one line says what, where and what was expected\n"
        "  3   the run ended otherwise, such as diverged or interrupted; its summary.json says how\n"
        "  70  an internal error\n\n"
        "Start:\n  rubato init first.json\n  rubato run first.json --out runs/first\n"
        "  rubato plot curves runs/first");
}

/// An argument that nobody expects.
[[noreturn]] void refuse_extra(const CLI::App& command, const std::string& extra) {
    std::vector<std::string> known;
    for (const CLI::Option* option : command.get_options()) {
        for (const auto& name : option->get_lnames()) known.push_back("--" + name);
    }
    const bool program = command.get_parent() == nullptr;
    const std::string prefix = program ? "" : command.get_name() + ": ";
    if (!extra.starts_with('-')) throw InputError(prefix + "unexpected argument \"" + extra + "\"");
    const std::string name = extra.substr(0, extra.find('='));
    const std::string near = nearest(name, known);
    throw InputError(prefix + "unknown option " + name +
                     (near.empty() ? "; known are " + one_of(known, "and") : "; did you mean " + near + "?"));
}

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    return names;
}

[[noreturn]] void refuse_command(const std::string& word, const CLI::App& app) {
    if (word.ends_with(".json"))
        throw InputError("expected a command before " + word + "; did you mean: rubato run " + word + "?");
    const auto names = command_names(app);
    const std::string near = nearest(word, names);
    throw InputError("unknown command \"" + word + "\"" +
                     (near.empty() ? "; there is " + one_of(names) : "; did you mean " + near + "?"));
}

const char* const what_it_is = "rubato: distributed SGD protocols, simulated and real, from one scenario file";

int help(const std::string& topic) {
    // An app that has parsed something shows the help of that.
    CLI::App app(what_it_is, "rubato");
    Arguments arguments;
    declare(app, arguments);
    const auto names = command_names(app);
    const bool command = std::find(names.begin(), names.end(), topic) != names.end();
    if (!topic.empty() && !command) return help_command(topic, names);
    const std::string text = topic.empty() ? app.help() : app.get_subcommand(topic)->help("rubato");
    std::fputs(text.c_str(), stdout);
    return exit_finished;
}

int dispatch(const CLI::App& app, const Arguments& arguments) {
    const auto chosen = app.get_subcommands();
    const auto extras = app.remaining();
    if (chosen.empty() || !extras.empty()) {
        if (extras.empty()) throw InputError("expected a command; rubato --help lists them");
        if (extras.front().starts_with('-')) refuse_extra(app, extras.front());
        refuse_command(extras.front(), app);
    }
    const CLI::App& command = *chosen.front();
    const std::string name = command.get_name();
    if (name != "run" && name != "calibrate" && name != "sweep") require_single_copy(name);
    if (name == "plot") return plot_command(command.remaining());
    if (name == "table") return table_command(command.remaining());
    if (const auto rest = command.remaining(); !rest.empty()) refuse_extra(command, rest.front());
    if (name == "compare") return compare_command(with_sides(arguments.compare, arguments.sides));
    const RunOptions& options = arguments.run;
    if (name == "init") return init_command(arguments.file, arguments.protocol, arguments.force);
    if (name == "list") return list_command(arguments.topic);
    if (name == "help" && arguments.schema && !arguments.topic.empty())
        throw InputError("help: --schema stands alone, without a topic");
    if (name == "help") return arguments.schema ? schema_command() : help(arguments.topic);
    if (name == "replay") {
        if (arguments.replay.run.empty()) throw InputError("replay: expected a run directory");
        return replay_command(arguments.replay);
    }
    if (name == "calibrate") return calibrate_command(arguments.calibrate);
    if (name == "sweep") {
        if (arguments.sweep.sweep.empty()) throw InputError("sweep: expected a sweep file");
        return sweep_command(arguments.sweep);
    }
    if (options.scenario.empty()) throw InputError(name + ": expected a scenario file");
    return name == "run" ? run_command(options) : check_command(options.scenario, options.sets, arguments.hostfile);
}

}  // namespace

int run_program(int argc, const char* const* argv) {
    // Of the ranks of a launcher one speaks, from the first word of the command line on.
    const bool speaks = find_rank().number == 0;
    if (!speaks) leave_wrong_input_to_others();
    return guarded([&] {
        CLI::App app(what_it_is, "rubato");
        Arguments arguments;
        declare(app, arguments);
        try {
            app.parse(argc, mark_sides(argc, argv).data());
        } catch (const CLI::Success& wanted) {
            return speaks ? app.exit(wanted) : static_cast<int>(exit_finished);
        } catch (const CLI::ParseError& problem) {
            throw InputError(problem.what());
        }
        return dispatch(app, arguments);
    });
}

}  // namespace rubato::cli
