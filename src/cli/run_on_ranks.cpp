// rubato run --backend mpi: every rank reads the scenario, all agree, and rank 0 speaks and writes.
#include "cli/backends.hpp"
#include "cli/emulate.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/log.hpp"
#include "cli/placed.hpp"
#include "cli/progress_bar.hpp"
#include "cli/resume.hpp"
#include "cli/run_directory.hpp"
#include "cli/run_steps.hpp"
#include "cli/signals.hpp"
#include "cli/sweep/ranks.hpp"
#include "exec/mpi/rank_silence.hpp"
#include "exec/mpi/ranks.hpp"
#include "trace/checkpoint_writer.hpp"
#include "trace/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

namespace rubato::cli {
namespace {

std::string host_name() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// What Slurm would have given, where the library found nothing.
std::string launcher_hint(int size) {
    const auto number = [](const char* variable) {
        const char* text = std::getenv(variable);
        return text ? std::atoi(text) : 0;
    };
    for (const char* variable : {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "PMI_SIZE"}) {
        const int said = number(variable);
        if (said > 0 && said != size)
            return std::string("; ") + variable + " says " + std::to_string(said) +
                   ", but the MPI library was not told: under Slurm start it with srun --mpi=pmix, or with mpirun";
    }
    return "";
}

/// Before the library is loaded: as the launcher tells by the environment.
void require_ranks(const Scenario& scenario, int size) {
    const int needed = ranks_needed(scenario);
    if (size == needed) return;
    throw InputError(
        "backend mpi: the scenario needs " + std::to_string(needed) + " ranks (" +
        (scenario.protocol.reduces() ? "" : "a server, and ") + std::to_string(scenario.lambda()) + " workers" +
        (scenario.workers_per_rank > 1 ? ", " + std::to_string(scenario.workers_per_rank) + " of them a rank" : "") +
        (scenario.has_relays()            ? ", and the relays of the tree"
         : scenario.topology == "sharded" ? ", and the other shards"
                                          : "") +
        "), but the launcher gives " + std::to_string(size) + ": expected mpirun -n " + std::to_string(needed) +
        " rubato run ..." + launcher_hint(size));
}

/// The launcher's word on how many there are: Open MPI's own, since it is its library that is loaded.
int launched_ranks() {
    const char* text = std::getenv("OMPI_COMM_WORLD_SIZE");
    if (text && std::atoi(text) > 0) return std::atoi(text);
    // srun --mpi=pmix sets no variable of Open MPI; the library knows better, once it is loaded.
    return std::getenv("PMIX_RANK") ? 0 : 1;
}

/// How long a rank may be silent, where no scenario says so yet,
constexpr Time unknown_limit_ns = 60'000'000'000;
/// and where one does.
Time limit_of(const Scenario& scenario) {
    return static_cast<Time>(std::min(scenario.stall_timeout_s, 1e9) * 1e9);
}

/// One rank in the run of all.
class Team {
public:
    explicit Team(exec::Fabric& fabric) : fabric_(fabric) {}
    bool first() const { return fabric_.rank() == 0; }
    /// How long a rank may be silent.
    void limit(const Scenario& scenario) { limit_ns_ = limit_of(scenario); }
    Time limit_ns() const { return limit_ns_; }

    /// Runs `step` on every rank and goes on only if it went well on all, with the same result (a text) on all.
    /// Throws this rank's problem, or on rank 0 that of the first rank that has one; the others end silently.
    std::vector<std::string> agree(const std::function<std::string()>& step, bool same) {
        std::exception_ptr problem;
        const auto all = exec::meet({fabric_, limit_ns_, say_lost}, [&]() -> std::string {
            try {
                return "+" + step();
            } catch (const std::exception& error) {
                problem = std::current_exception();
                return std::string("-") + error.what();
            }
        });
        std::string verdict;
        for (std::size_t i = 0; i < all.size() && verdict.empty(); ++i) {
            if (all[i].front() == '-') verdict = "rank " + std::to_string(i) + ": " + all[i].substr(1);
            if (same && all[i] != all.front())
                verdict = "rank " + std::to_string(i) +
                          " reads another scenario, or is another rubato, than rank 0: all ranks need the same files";
        }
        char go = verdict.empty() ? 1 : 0;
        fabric_.broadcast(&go, sizeof go);
        if (problem) std::rethrow_exception(problem);
        if (!go) throw InputError(verdict);
        return all;
    }
    /// Rank 0's number, everywhere.
    int from_first(int number) {
        fabric_.broadcast(&number, sizeof number);
        return number;
    }

    /// Rank 0's numbers, everywhere.
    void from_first(std::vector<float>& numbers) {
        auto size = static_cast<std::uint64_t>(numbers.size());
        fabric_.broadcast(&size, sizeof size);
        numbers.resize(size);
        constexpr std::uint64_t at_once = std::uint64_t{1} << 28;
        for (std::uint64_t first = 0; first < size; first += at_once)
            fabric_.broadcast(numbers.data() + first, std::min(at_once, size - first) * sizeof(float));
    }
    /// Rank 0's text, everywhere.
    std::string from_first(std::string text) {
        auto size = static_cast<std::uint64_t>(text.size());
        fabric_.broadcast(&size, sizeof size);
        text.resize(size);
        if (size > 0) fabric_.broadcast(text.data(), text.size());
        return text;
    }

private:
    static void say_lost(int rank, Time silence_ns) {
        error("rank " + std::to_string(rank) + " has not answered for " + std::to_string(silence_ns / 1'000'000'000) +
              " s while ranks read the scenario and the data; the run ends before it begins");
    }

    exec::Fabric& fabric_;
    Time limit_ns_ = unknown_limit_ns;
};

/// What the run goes on from: rank 0 reads it, and tells the others what their roles need.
std::optional<trace::Checkpoint> share_checkpoint(Team& team, const RunOptions& options, const Loaded& loaded,
                                                  const std::string& directory) {
    std::optional<trace::Checkpoint> found;
    team.agree(
        [&] {
            if (team.first()) found = checkpoint_to_resume(directory, loaded, options.backend);
            return "";
        },
        false);
    const std::string roles = team.from_first(found ? trace::to_text(found->head.roles) : "");
    if (roles.empty()) return found;
    if (!found) found.emplace().head.roles = trace::run_state_from_text(roles);
    // Where models are averaged all begin from the joint one, and replicas from that of worker 0.
    if (loaded.scenario.protocol.averages() || loaded.scenario.protocol.reduces()) team.from_first(found->weights);
    if (loaded.scenario.protocol.reduces()) team.from_first(found->velocity);
    return found;
}

/// What all ranks must have in common.
std::string identity(const Loaded& loaded) {
    return to_json(loaded.tree, false) + trace::program_version() + trace::program_revision() +
           std::to_string(sizeof(exec::Note));
}

struct Outcome {
    int status = exit_internal;
    bool abandoned = true;  ///< until it went well
};

void run_rank(const RunOptions& options, exec::Fabric& fabric, Outcome& outcome) {
    Team team(fabric);
    const std::atomic<bool>& interrupted = watch_signals();
    Loaded loaded;
    team.agree(
        [&] {
            loaded = load_for_run(options);
            require_ranks(loaded.scenario, fabric.size());
            return identity(loaded);
        },
        true);
    const Scenario& scenario = loaded.scenario;
    team.limit(scenario);
    const std::string directory = directory_of(options, loaded);
    std::optional<DirectoryLock> lock;
    std::optional<int> earlier;
    team.agree(
        [&] {
            if (!team.first()) return "";
            lock.emplace(directory);
            earlier = report_earlier(options, loaded, directory);
            return "";
        },
        false);
    constexpr int none = -1;
    if (const int status = team.from_first(earlier.value_or(none)); status != none) {
        outcome = {status, false};
        return;
    }

    std::optional<trace::Checkpoint> resumed;
    if (options.resume) resumed = share_checkpoint(team, options, loaded, directory);

    std::unique_ptr<learn::Task> task;
    std::unique_ptr<trace::EmulatedCosts> emulated;
    auto output = recorder_options(options, loaded, directory);
    output.rank = fabric.rank();
    if (resumed) output.resume = recorder_resume(*resumed);
    std::optional<trace::Recorder> recorder;
    auto hosts = team.agree(
        [&] {
            task = learn::make_task(scenario);
            emulated = with_place(loaded, [&] { return emulated_costs(scenario, task->parameters()); });
            return host_name();
        },
        false);
    for (auto& host : hosts) host.erase(0, 1);
    if (team.first()) {
        output.places = exec::rank_places(scenario, hosts);
        output.libraries["mpi"] = fabric.library();
    }
    // Rank 0 first, since it clears the folder.
    team.agree([&] { return team.first() ? (recorder.emplace(scenario, output), "") : ""; }, false);
    const bool parts = scenario.trace.timeline || scenario.trace.events;
    team.agree(
        [&] {
            if (team.first()) return "";
            if (parts && ::access((directory + "/scenario.json").c_str(), F_OK) != 0)
                throw InputError(directory + ": rank " + std::to_string(fabric.rank()) + " on " + host_name() +
                                 " does not see the run directory of rank 0, where it writes its part of the timeline "
                                 "and the event log: choose one on a file system that all ranks share");
            if (!parts) output.directory.clear();
            recorder.emplace(scenario, output);
            return "";
        },
        false);

    auto input = run_input(loaded, task.get(), *recorder, interrupted);
    input.emulated = emulated.get();
    input.hosts = hosts;
    std::unique_ptr<trace::CheckpointWriter> checkpoints;
    if (team.first())
        checkpoints = checkpoint_writer(directory, loaded, options.backend, resumed ? &*resumed : nullptr);
    input.checkpoints = checkpoints.get();
    input.resume = resumed ? &*resumed : nullptr;
    // What a rank other than the first has to say in mid-run, nobody else can.
    if (!team.first()) input.remark = [](const std::string& text) { error(text); };
    outcome.status = exit_ended_otherwise;
    exec::RankResult result;
    const auto report = guarded_run(options, loaded, directory, [&] {
        std::optional<ProgressBar> bar;
        if (team.first()) bar.emplace(*recorder, options.quiet);
        if (bar) input.tick = [&bar] { bar->tick(); };
        result = exec::run_ranks(input, fabric);
        return result.report;
    });
    const exec::Patience patience{
        fabric, team.limit_ns(), [map = exec::rank_map(scenario), hosts](int rank, Time silence_ns) {
            error((rank < 0 ? "some rank" : exec::rank_text(map, hosts, rank)) + " has not answered for " +
                  std::to_string(silence_ns / 1'000'000'000) + " s; " +
                  (rank == 0 ? "the run ends, perhaps without its summary" : "the run is whole"));
        }};
    if (team.first()) {
        if (report.oversubscribed) warn("more ranks on this host than cores: times are those of ranks that take turns");
        if (report.bound_to_one_core && !report.oversubscribed)
            warn("ranks are bound to a core each, where computation and messages take turns: mpirun --bind-to none");
        exec::keep_alive(patience, [&] { outcome.status = conclude(options, directory, *recorder, report); });
    } else {
        outcome.status = report.status == Status::finished ? exit_finished : exit_ended_otherwise;
    }
    outcome.abandoned = result.abandoned || report.status == Status::disk_full;
    if (outcome.abandoned) return;
    if (team.first())
        exec::let_go(patience, outcome.status);
    else
        exec::wait_to_leave(patience);
    exec::limit_farewell(patience, outcome.status);
}

}  // namespace

int ranks_needed(const Scenario& scenario) {
    return exec::rank_map(scenario).ranks();
}

int run_on_ranks(const RunOptions& options) {
    // One speaks, from the first word on.
    const int rank = find_rank().number;
    if (rank != 0) be_quiet();
    // Without a launcher the library would start, alone, and only then find out.
    Time limit_ns = unknown_limit_ns;
    if (const int launched = launched_ranks(); launched > 0) {
        const Scenario scenario = load_scenario(options.scenario, options.sets).scenario;
        require_ranks(scenario, launched);
        // The library may take long to come up where ranks share cores.
        limit_ns = std::max<Time>(limit_of(scenario), 30'000'000'000);
    }
    std::unique_ptr<exec::Fabric> fabric;
    try {
        // It waits for all ranks, whatever they do. Two speak, if it has to be.
        const exec::Deadline deadline(limit_ns + std::min(rank, 2) * Time{2'000'000'000}, [rank, limit_ns] {
            if (rank < 2)
                error("the MPI library has not come up for " + std::to_string(limit_ns / 1'000'000'000) +
                      " s: a rank stands still, or its host does; the run ends before it begins");
            std::_Exit(exit_ended_otherwise);
        });
        fabric = exec::open_mpi();
    } catch (const exec::FabricError& problem) {
        throw InputError(std::string("backend mpi: ") + problem.what());
    }
    RunOptions mine = options;
    if (fabric->rank() > 0) {
        mine.quiet = true;
        mine.json = false;
        leave_wrong_input_to_others();
        be_quiet();
    }
    Outcome outcome;
    const int status = guarded([&] {
        run_rank(mine, *fabric, outcome);
        return outcome.status;
    });
    if (!outcome.abandoned) return status;
    if (fabric->rank() == 0) fabric->abort(status);
    // Rank 0 ends the program once it has written what there is.
    std::this_thread::sleep_for(std::chrono::seconds(60));
    fabric->abort(status);
    return status;
}

}  // namespace rubato::cli
