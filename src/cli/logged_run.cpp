#include "cli/logged_run.hpp"

#include "cli/json_reader.hpp"
#include "cli/resume.hpp"
#include "cli/sweep/csv.hpp"
#include "core/role.hpp"
#include "trace/event_log.hpp"
#include "trace/rank_parts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

void read_summary(LoggedRun& run) {
    std::error_code error;
    const fs::path path = fs::path(run.directory) / "summary.json";
    if (!fs::is_regular_file(path, error)) return;
    const Node summary = read_json(path.string());
    run.has_summary = true;
    run.status = text_at(summary, "status");
    run.backend = text_at(summary, "backend");
    run.weights_hash = text_at(summary, "weights_hash");
    run.virtual_clock = text_at(summary, "clock") != "wall";
}

/// Places of the rows of a table: by the column that numbers them, from `first_role` on.
void read_places(const fs::path& path, const std::string& number, RoleId first_role,
                 std::vector<trace::Place>& places) {
    std::ifstream in(path);
    std::string line;
    std::vector<std::string> header, cells;
    if (!std::getline(in, line) || !split_csv(line, header)) return;
    const auto column = [&](const std::string& name) {
        return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
    };
    const std::size_t at = column(number), host = column("host"), device = column("device");
    while (std::getline(in, line)) {
        if (!split_csv(line, cells) || cells.size() != header.size() || at == header.size()) continue;
        const double role = cell_number(cells[at]) + first_role;
        if (!(role >= 0 && role < static_cast<double>(places.size()))) continue;
        trace::Place& place = places[static_cast<std::size_t>(role)];
        if (host < cells.size()) place.host = cells[host];
        if (device < cells.size()) place.device = cells[device];
    }
}

/// What the log of a resumed run begins with: it has the state of the roles, and only a checkpoint has the weights.
trace::Checkpoint first_checkpoint(const LoggedRun& run) {
    const Version version = run.resumed->server.version;
    const std::string path = trace::checkpoint_folder(run.directory) + "/" + std::to_string(version) + ".ckpt";
    const std::string why = ", but the run was resumed from it, and what its gradients began from is nowhere else";
    std::error_code error;
    if (!fs::exists(path, error))
        throw InputError(path + ": is missing" + why +
                         "; rubato replay without --weights and --set compares the actions");
    trace::Checkpoint found;
    try {
        found = trace::read_checkpoint(run.directory, version);
    } catch (const std::invalid_argument& problem) {
        throw InputError(problem.what() + why);
    }
    const auto parameters = static_cast<std::int64_t>(found.weights.size());
    if (trace::to_text(found.head.roles) != trace::to_text(*run.resumed) || parameters != run.header.parameters)
        throw InputError(path + ": is not the checkpoint that " + run.log_path + " begins with, only one of the same " +
                         "version; expected the file that the run was resumed from");
    if (const auto keys = differing_keys(run.loaded, found.head.scenario); !keys.empty())
        throw InputError(path + ": is of another scenario than scenario.json, which differs in " + keys.front());
    return found;
}

/// The ranks of a run that was killed leave a log each. They are joined in a file that is gone once it is closed.
void open_log(LoggedRun& run) {
    run.log.open(run.log_path, std::ios::binary);
    if (run.log) return;
    std::string joined = (fs::temp_directory_path() / "rubato-XXXXXX").string();
    const int descriptor = ::mkstemp(joined.data());
    if (descriptor < 0) return;
    ::close(descriptor);
    try {
        if (trace::join_event_logs(run.directory, joined)) {
            run.log.clear();
            run.log.open(joined, std::ios::binary);
            std::error_code error;
            run.log_bytes = static_cast<std::int64_t>(fs::file_size(joined, error));
        }
    } catch (...) {
        ::unlink(joined.c_str());
        throw;
    }
    ::unlink(joined.c_str());
}

}  // namespace

double LoggedRun::fraction() {
    const auto at = log ? static_cast<std::int64_t>(log.tellg()) : log_bytes;
    return log_bytes > 0 ? std::min(1.0, static_cast<double>(at) / static_cast<double>(log_bytes)) : 1;
}

std::unique_ptr<LoggedRun> open_recorded(const std::string& directory) {
    auto run = std::make_unique<LoggedRun>();
    run->directory = directory;
    const fs::path folder(directory);
    std::error_code error;
    if (!fs::is_directory(folder, error)) throw InputError(directory + ": there is no such run directory");
    // The log tells the sizes, so that the data set need not be at hand.
    run->loaded = read_scenario((folder / "scenario.json").string());
    run->log_path = (folder / "events.log").string();
    open_log(*run);
    if (!run->log) throw InputError(run->log_path + ": cannot be read; a run leaves it with --events");
    const auto bytes = fs::file_size(run->log_path, error);
    if (!error) run->log_bytes = static_cast<std::int64_t>(bytes);
    try {
        run->header = trace::read_header(run->log);
        run->log.clear();
        run->log.seekg(0);
        if (const std::string text = trace::read_state(run->log); !text.empty())
            run->resumed = trace::run_state_from_text(text);
    } catch (const trace::NotALog&) {
        throw InputError(run->log_path + (run->log_bytes == 0 ? ": is empty" : ": is no event log") +
                         "; expected the file that rubato run --events leaves");
    } catch (const std::invalid_argument& problem) {
        throw LogDiffers(run->log_path + ": differs: " + problem.what());
    }
    if (run->header.lambda != run->loaded.scenario.lambda()) {
        throw InputError(run->log_path + ": is of " + std::to_string(run->header.lambda) +
                         " workers, scenario.json has " + std::to_string(run->loaded.scenario.lambda()));
    }
    run->loaded.samples = run->header.samples;
    run->loaded.parameters = run->header.parameters;
    if (!run->header.layers.empty()) run->loaded.scenario.layers = run->header.layers;
    complete_schedule(run->loaded);
    run->log.clear();
    run->log.seekg(0);
    read_summary(*run);
    return run;
}

std::vector<trace::Place> recorded_places(const LoggedRun& run) {
    std::vector<trace::Place> places(static_cast<std::size_t>(roles_of(run.loaded.scenario)));
    const fs::path folder(run.directory);
    read_places(folder / "workers.csv", "worker", 1, places);
    read_places(folder / "servers.csv", "role", 0, places);
    return places;
}

std::unique_ptr<learn::Task> recorded_task(LoggedRun& run) {
    const Loaded& loaded = run.loaded;
    if (!loaded.scenario.model.gradients)
        throw InputError(run.directory + ": was a run of timing only: there are no gradients to compute again");
    if (!loaded.scenario.schedule.trace.empty())
        throw InputError(run.directory + ": followed schedule.trace, and its log has the server alone; rubato run " +
                         run.directory + "/scenario.json computes it again, under any rule");
    if (run.resumed) run.checkpoint = first_checkpoint(run);
    auto task = learn::make_task(loaded.scenario);
    if (task->samples() != run.header.samples || task->parameters() != run.header.parameters)
        throw InputError(
            fmt::format("{}: was recorded with {} training samples and {} parameters; the data at hand make {} and {}",
                        run.log_path, run.header.samples, run.header.parameters, task->samples(), task->parameters()));
    return task;
}

std::vector<Role> recorded_roles(const LoggedRun& run, const Scenario& scenario) {
    return make_roles(scenario, run.header.samples, run.header.parameters, run.resumed ? &*run.resumed : nullptr);
}

std::string verdict(const LoggedRun& run, const trace::ReplayResult& result) {
    if (!result.same) return run.log_path + ": differs: " + result.difference;
    // A summary is written last, so the log of a run that has one was whole once.
    if (!result.complete && run.has_summary)
        return fmt::format("{}: differs: the log breaks off after line {}, but the run has ended and left its summary",
                           run.log_path, result.lines);
    return {};
}

trace::ReplayResult replay_into(LoggedRun& run, sim::Recomputation& recomputation, const std::function<bool()>& go_on) {
    return trace::replay(run.log, recorded_roles(run, run.loaded.scenario),
                         [&](Time now, RoleId role, const Event& event, const Actions& actions) {
                             recomputation.take(now, role, event, actions);
                             return go_on();
                         });
}

}  // namespace rubato::cli
