// rubato replay: the recorded events of a run through fresh roles; on request with all that they compute.
#include "cli/commands.hpp"
#include "cli/error.hpp"
#include "cli/exit_status.hpp"
#include "cli/log.hpp"
#include "cli/logged_run.hpp"
#include "cli/progress_bar.hpp"
#include "cli/recompute.hpp"
#include "core/role.hpp"
#include "sim/replay/verification.hpp"
#include "trace/event_log.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace rubato::cli {
namespace {

int negative(const std::string& text) {
    std::printf("%s\n", text.c_str());
    return exit_negative;
}

void say_complete(const LoggedRun& run, const trace::ReplayResult& result) {
    if (!result.complete) warn(run.log_path + " breaks off: the run did not end in order; what is there was replayed");
}

void say_same(const LoggedRun& run, const trace::ReplayResult& result) {
    std::printf("%s: the same actions in all %lld steps (%lld lines)\n", run.log_path.c_str(),
                static_cast<long long>(result.steps), static_cast<long long>(result.lines));
}

int replay_actions(LoggedRun& run) {
    const trace::ReplayResult result = trace::replay(run.log, recorded_roles(run, run.loaded.scenario));
    if (const std::string text = verdict(run, result); !text.empty()) return negative(text);
    say_complete(run, result);
    say_same(run, result);
    return exit_finished;
}

/// What the recomputation found; false where it is not what was recorded.
bool tell_weights(const LoggedRun& run, const trace::ReplayResult& result, sim::Recomputation& recomputation,
                  const sim::Verification& verification, bool evaluated) {
    bool same = true;
    for (const std::string& difference : {verification.loss_difference(), verification.evaluation_difference()}) {
        if (difference.empty()) continue;
        same = false;
        std::printf("%s: differs: %s\n", run.log_path.c_str(), difference.c_str());
    }
    const auto hash = recomputation.weights_hash();
    const std::string text = hash ? fmt::format("{:016x}", *hash) : "";
    const bool known = !run.weights_hash.empty() && result.complete;
    if (known && text != run.weights_hash) {
        same = false;
        std::printf("%s: differs: the final weights are %s, recorded is %s\n", run.log_path.c_str(),
                    text.empty() ? "none" : text.c_str(), run.weights_hash.c_str());
    }
    if (!same) return false;
    if (!recomputation.cut().empty()) {
        std::printf("%s: the same losses of %lld gradients, as far as it goes: %s\n", run.log_path.c_str(),
                    static_cast<long long>(recomputation.gradients()), recomputation.cut().c_str());
        return true;
    }
    const std::string evaluations =
        evaluated ? fmt::format("the same figures of {} evaluations, ", recomputation.evaluations()) : "";
    std::printf("%s: the same losses of %lld gradients, %s%s\n", run.log_path.c_str(),
                static_cast<long long>(recomputation.gradients()), evaluations.c_str(),
                known          ? ("the same final weights " + text).c_str()
                : text.empty() ? "and no weights at the end to compare"
                               : ("weights " + text + "; the run left no hash to compare").c_str());
    return true;
}

trace::ReplayResult read_log(LoggedRun& run, sim::Recomputation& recomputation, bool quiet) {
    ProgressBar bar(
        [&] {
            trace::Progress progress;
            progress.fraction = run.fraction();
            progress.gradients = recomputation.gradients();
            return progress;
        },
        quiet);
    const auto result = replay_into(run, recomputation, [&bar] {
        bar.tick();
        return true;
    });
    if (result.same && result.complete) recomputation.end();
    return result;
}

int replay_weights(LoggedRun& run, const ReplayOptions& options) {
    const ProtocolSpec& protocol = run.loaded.scenario.protocol;
    if (protocol.reduces() && protocol.collective.native())
        throw InputError("--weights: " + run.directory +
                         " summed its gradients by the MPI library (protocol.algorithm \"native\"), in an order that "
                         "nobody records: without --weights all that its roles decided is replayed");
    const auto task = recorded_task(run);
    sim::Verification verification;
    sim::Recomputation recomputation(run.loaded.scenario, *task,
                                     {run.loaded.scenario.pool_threads, options.evaluate, run.start()}, verification);
    trace::ReplayResult result;
    try {
        result = read_log(run, recomputation, options.quiet);
    } catch (const sim::InconsistentLog& problem) {
        return negative(run.log_path + ": differs: " + problem.what());
    }
    if (const std::string text = verdict(run, result); !text.empty()) return negative(text);
    say_complete(run, result);
    say_same(run, result);
    return tell_weights(run, result, recomputation, verification, options.evaluate) ? exit_finished : exit_negative;
}

}  // namespace

int replay_command(const ReplayOptions& options) {
    if (options.quiet) be_quiet();
    if (options.evaluate && !options.weights && options.sets.empty())
        throw InputError("replay: --evaluate goes with --weights");
    if (options.weights && !options.sets.empty())
        throw InputError(
            "replay: --weights compares with what was recorded; it cannot stand beside --set, which "
            "computes something else");
    if (options.sets.empty() && (!options.directory.empty() || options.json || options.force))
        throw InputError("replay: --out, --json and --force go with --set, which leaves a run directory");
    try {
        const auto run = open_recorded(options.run);
        if (!options.sets.empty()) return recompute(*run, options);
        return options.weights ? replay_weights(*run, options) : replay_actions(*run);
    } catch (const LogDiffers& problem) {
        return negative(problem.what());
    }
}

}  // namespace rubato::cli
