// The only file that sees CLI11.
#include "cli/app.hpp"

#include "cli/commands.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/suggest.hpp"
#include "trace/environment.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace rubato::cli {
namespace {

struct Arguments {
    RunOptions run;
    std::string topic;
    std::string run_directory;
};

/// Values of --set begin with a key, so that nothing in them is taken for another value or a list.
void add_sets(CLI::App& command, std::vector<std::string>& sets) {
    command
        .add_option("--set", sets, "KEY=VALUE: a key of the scenario, such as protocol.n=4; VALUE is JSON or a word")
        ->type_name("KEY=VALUE")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
}

void declare(CLI::App& app, Arguments& arguments) {
    app.set_version_flag("--version", "rubato " + trace::program_version() + " (" + trace::program_revision() + ")");
    // What is not known is told by our own messages, with suggestions.
    app.allow_extras();
    RunOptions& options = arguments.run;
    CLI::App* run = app.add_subcommand("run", "runs a scenario and leaves a run directory");
    run->add_option("SCENARIO", options.scenario, "scenario file (JSON)");
    run->add_option("--backend", options.backend, "sim (default) or local")->type_name("NAME");
    run->add_option("--out", options.directory, "run directory (default: runs/NAME-HASH)")->type_name("DIR");
    add_sets(*run, options.sets);
    run->add_flag("--timeline", options.timeline, "also write timeline.csv");
    run->add_flag("--events", options.events, "also write events.log, for rubato replay");
    run->add_flag("--json", options.json, "print the summary as JSON");
    run->add_flag("--quiet", options.quiet, "print errors only");
    run->add_flag("--force", options.force, "replace the files of an earlier run");

    CLI::App* check = app.add_subcommand("check", "checks a scenario and explains it, without running it");
    check->add_option("SCENARIO", options.scenario, "scenario file (JSON)");
    add_sets(*check, options.sets);

    CLI::App* list = app.add_subcommand("list", "lists " + one_of(list_topics(), "and"));
    list->add_option("TOPIC", arguments.topic, one_of(list_topics()));

    CLI::App* replay = app.add_subcommand("replay", "feeds the recorded events of a run through fresh roles");
    replay->add_option("RUN", arguments.run_directory, "run directory with events.log");

    CLI::App* plot =
        app.add_subcommand("plot", "draws a figure of runs: KIND RUN... [-o FILE], with KIND " + one_of(plot_kinds()));
    plot->prefix_command();
    for (CLI::App* command : {run, check, list, replay}) command->allow_extras();
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

[[noreturn]] void refuse_command(const std::string& word, const CLI::App& app) {
    const std::vector<std::string> later{"init", "sweep", "compare", "calibrate", "help"};
    if (std::find(later.begin(), later.end(), word) != later.end()) {
        throw InputError("command " + word + " is reserved, but not yet built");
    }
    if (word.ends_with(".json"))
        throw InputError("expected a command before " + word + "; did you mean: rubato run " + word + "?");
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    const std::string near = nearest(word, names);
    throw InputError("unknown command \"" + word + "\"" +
                     (near.empty() ? "; there is " + one_of(names) : "; did you mean " + near + "?"));
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
    if (name == "plot") return plot_command(command.remaining());
    if (const auto rest = command.remaining(); !rest.empty()) refuse_extra(command, rest.front());
    const RunOptions& options = arguments.run;
    if (name == "list") return list_command(arguments.topic);
    if (name == "replay") {
        if (arguments.run_directory.empty()) throw InputError("replay: expected a run directory");
        return replay_command(arguments.run_directory);
    }
    if (options.scenario.empty()) throw InputError(name + ": expected a scenario file");
    return name == "run" ? run_command(options) : check_command(options.scenario, options.sets);
}

}  // namespace

int run_program(int argc, const char* const* argv) {
    return guarded([&] {
        CLI::App app("rubato: distributed SGD protocols, simulated and real, from one scenario file", "rubato");
        Arguments arguments;
        declare(app, arguments);
        try {
            app.parse(argc, argv);
        } catch (const CLI::Success& wanted) {
            return app.exit(wanted);
        } catch (const CLI::ParseError& problem) {
            throw InputError(problem.what());
        }
        return dispatch(app, arguments);
    });
}

}  // namespace rubato::cli
