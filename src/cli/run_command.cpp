// rubato run: from a scenario to a run directory.
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
#include "trace/checkpoint_writer.hpp"

namespace rubato::cli {
namespace {

/// Copies that a launcher has started would all do the same, into one folder.
void refuse_copies(const std::string& backend) {
    const Rank rank = find_rank();
    if (rank.count < 2) return;
    throw InputError("a launcher has started " + std::to_string(rank.count) +
                     " copies of this run, which would write the same files: expected --backend mpi, which shares the "
                     "roles between them, or a single copy of --backend " +
                     backend);
}

}  // namespace

int run_command(const RunOptions& options) {
    if (options.quiet) be_quiet();
    require_backend(options.backend);
    if (options.backend == "mpi") return run_on_ranks(options);
    refuse_copies(options.backend);
    const std::atomic<bool>& interrupted = watch_signals();
    const Loaded loaded = load_for_run(options);
    const Scenario& scenario = loaded.scenario;
    const std::string directory = directory_of(options, loaded);
    const DirectoryLock lock(directory);
    if (const auto earlier = report_earlier(options, loaded, directory)) return *earlier;
    const auto resumed = options.resume ? checkpoint_to_resume(directory, loaded, options.backend) : std::nullopt;

    // All that may be wrong with the input comes before the first file is written.
    auto output = recorder_options(options, loaded, directory);
    const auto backend = with_place(loaded, [&] { return open_backend(options.backend, scenario); });
    for (const auto& text : backend->warnings()) warn(text);
    output.places = backend->places();
    output.one_thread = backend->one_thread();
    const auto task = scenario.model.gradients ? learn::make_task(scenario) : nullptr;
    const auto emulated = with_place(
        loaded, [&] { return options.backend == "sim" ? nullptr : emulated_costs(scenario, loaded.parameters); });

    if (resumed) output.resume = recorder_resume(*resumed);
    trace::Recorder recorder(scenario, output);
    const auto checkpoints = checkpoint_writer(directory, loaded, options.backend, resumed ? &*resumed : nullptr);
    auto input = run_input(loaded, task.get(), recorder, interrupted);
    input.emulated = emulated.get();
    input.checkpoints = checkpoints.get();
    input.resume = resumed ? &*resumed : nullptr;
    const auto report = guarded_run(options, loaded, directory, [&] {
        ProgressBar bar(recorder, options.quiet);
        input.tick = [&bar] { bar.tick(); };
        return backend->run(input);
    });
    return conclude(options, directory, recorder, report);
}

}  // namespace rubato::cli
