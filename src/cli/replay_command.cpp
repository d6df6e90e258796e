// rubato replay: the recorded events of a run through fresh roles.
#include "cli/commands.hpp"
#include "cli/exit_status.hpp"
#include "cli/load.hpp"
#include "cli/log.hpp"
#include "core/role.hpp"
#include "trace/checkpoint.hpp"
#include "trace/event_log.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

namespace rubato::cli {

int replay_command(const std::string& run_directory) {
    namespace fs = std::filesystem;
    const fs::path folder(run_directory);
    std::error_code status;
    if (!fs::is_directory(folder, status)) throw InputError(run_directory + ": there is no such run directory");
    // The log tells the sizes, so that the data set need not be at hand.
    const Loaded loaded = read_scenario((folder / "scenario.json").string());
    const std::string log_path = (folder / "events.log").string();
    std::ifstream log(log_path, std::ios::binary);
    if (!log) throw InputError(log_path + ": cannot be read; a run leaves it with --events");
    trace::LogHeader header;
    std::optional<RunState> state;
    try {
        header = trace::read_header(log);
        log.clear();
        log.seekg(0);
        if (const std::string text = trace::read_state(log); !text.empty()) state = trace::run_state_from_text(text);
    } catch (const std::invalid_argument& problem) {
        std::printf("%s: differs: %s\n", log_path.c_str(), problem.what());
        return exit_negative;
    }
    if (header.lambda != loaded.scenario.lambda()) {
        throw InputError(log_path + ": is of " + std::to_string(header.lambda) + " workers, scenario.json has " +
                         std::to_string(loaded.scenario.lambda()));
    }
    log.clear();
    log.seekg(0);
    const trace::ReplayResult result =
        trace::replay(log, make_roles(loaded.scenario, header.samples, header.parameters, state ? &*state : nullptr));
    // A summary is written last, so the log of a run that has one was whole once.
    if (result.same && !result.complete && fs::exists(folder / "summary.json", status)) {
        std::printf("%s: differs: the log breaks off after line %lld, but the run has ended and left its summary\n",
                    log_path.c_str(), static_cast<long long>(result.lines));
        return exit_negative;
    }
    if (!result.complete) warn(log_path + " breaks off: the run did not end in order; what is there was replayed");
    if (!result.same) {
        std::printf("%s: differs: %s\n", log_path.c_str(), result.difference.c_str());
        return exit_negative;
    }
    std::printf("%s: the same actions in all %lld steps (%lld lines)\n", log_path.c_str(),
                static_cast<long long>(result.steps), static_cast<long long>(result.lines));
    return exit_finished;
}

}  // namespace rubato::cli
