#include "cli/estimate.hpp"

#include "cli/protocol_text.hpp"
#include "cli/tree_text.hpp"
#include "core/collective/plan.hpp"
#include "core/shards.hpp"
#include "core/tree.hpp"
#include "learn/cores.hpp"
#include "learn/task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

// Measured means of the rows that a run writes, bytes.
constexpr double gradient_row = 100;
constexpr double update_row = 50;
constexpr double round_row = 130;
constexpr double shard_row_bytes = 35;
constexpr double timeline_of_gradient = 150;
constexpr double events_of_gradient = 2400;

/// Slices of the part of an epoch behind the whole ones.
double slices_of_rest(const Loaded& loaded, double epochs) {
    const double rest = (epochs - std::floor(epochs)) * static_cast<double>(loaded.samples);
    return std::ceil(rest / loaded.scenario.workers.slice_size() - 1e-9);
}

/// Of so many samples of an epoch, dealt in slices.
double gradients_of(const Loaded& loaded, double samples) {
    const double slice = loaded.scenario.workers.slice_size(), batch = loaded.scenario.workers.batch_size;
    const double whole = std::floor(samples / slice);
    return whole * loaded.scenario.workers.communication.push_every +
           std::ceil((samples - whole * slice) / batch - 1e-9);
}

/// Updates of so many epochs in rounds, none of which spans two of them.
double updates_in_rounds(const Loaded& loaded, const Estimate& plan, double epochs, int per_update) {
    const double whole = std::floor(epochs) * std::ceil(static_cast<double>(plan.slices) / per_update);
    return whole + std::ceil(slices_of_rest(loaded, epochs) / per_update);
}

/// Under hardsync, at the beginning.
struct WarmStart {
    double gradients = 0, updates = 0;
};

WarmStart warm_start(const Loaded& loaded, const Estimate& plan) {
    const double epochs = loaded.scenario.protocol.warm_epochs;
    return {std::floor(epochs) * static_cast<double>(plan.slices) + slices_of_rest(loaded, epochs),
            updates_in_rounds(loaded, plan, epochs, loaded.scenario.lambda())};
}

/// The pushes of so many updates.
double pushes_of(const Loaded& loaded, const Estimate& plan, double updates) {
    const WarmStart warm = warm_start(loaded, plan);
    if (updates <= warm.updates) return updates * loaded.scenario.lambda();
    return warm.gradients + (updates - warm.updates) * plan.per_update;
}

double updates_of(const Loaded& loaded, const Estimate& plan) {
    const bool barrier = traits_of(loaded.scenario).rounds;
    const double pushes = *plan.pushes;
    if (barrier && plan.limited_by == "epochs" && loaded.scenario.protocol.warm_epochs == 0)
        return updates_in_rounds(loaded, plan, *loaded.scenario.stop.epochs, plan.per_update);
    if (plan.limited_by == "updates") return static_cast<double>(*loaded.scenario.stop.updates);
    const WarmStart warm = warm_start(loaded, plan);  // where a push is a gradient
    const int lambda = loaded.scenario.lambda();
    if (pushes <= warm.gradients)
        return plan.limited_by == "epochs" ? updates_in_rounds(loaded, plan, *loaded.scenario.stop.epochs, lambda)
                                           : std::ceil(pushes / lambda);
    return warm.updates + std::ceil((pushes - warm.gradients) / plan.per_update);
}

/// Models are handed over, of which the monitor hears, and averaged for each evaluation, and at the end.
void gossip(const Loaded& loaded, Estimate& plan) {
    const Scenario& scenario = loaded.scenario;
    const double lambda = scenario.lambda();
    const double hand_overs = lambda > 1 ? std::floor(*plan.gradients / scenario.protocol.averaging.tau) : 0;
    const double epochs = *plan.gradients * scenario.workers.batch_size / static_cast<double>(loaded.samples);
    const auto every = scenario.model.gradients ? scenario.evaluate.every_epochs : std::nullopt;
    plan.updates = 1 + (every ? std::floor(epochs / *every) : 0);
    plan.pushes = hand_overs + *plan.updates * lambda;
    plan.messages = 2 * hand_overs + 3 * *plan.updates * lambda + *plan.gradients;
    plan.network_bytes = *plan.pushes * static_cast<double>(scenario.cost.push_bytes);
}

/// A worker hands on one sum and gets one model a round, and tells of every step.
void average(const Loaded& loaded, Estimate& plan) {
    const Scenario& scenario = loaded.scenario;
    if (scenario.protocol.gossips()) return gossip(loaded, plan);
    const double workers = scenario.protocol.averages_in_rounds() ? scenario.lambda() : 1;
    plan.gradients = std::ceil(*plan.gradients / workers) * workers;
    plan.pushes = *plan.updates * workers;
    plan.messages = 2 * *plan.pushes + *plan.gradients;
    plan.network_bytes = *plan.pushes * static_cast<double>(scenario.cost.push_bytes + scenario.cost.pull_bytes) /
                         scenario.protocol.averaging.stream.fragments;
}

/// Workers tell of each gradient and each iteration; of what they send each other all ranks' routes are counted, or
/// those of the first ones for all.
void reduce(const Loaded& loaded, Estimate& plan) {
    constexpr int looked_at = 64;
    const Scenario& scenario = loaded.scenario;
    const CollectiveSpec& spec = scenario.protocol.collective;
    const int lambda = scenario.lambda(), ranks = std::min(lambda, looked_at);
    const auto whole = static_cast<double>(scenario.cost.push_bytes);
    const double elements = loaded.parameters > 0 ? static_cast<double>(loaded.parameters) : whole;
    double messages = 0, bytes = 0;
    for (const Bucket& bucket : make_buckets(scenario, loaded.parameters)) {
        if (spec.mode == CollectiveMode::no_comm) break;
        const auto size = static_cast<std::int64_t>(static_cast<double>(bucket.range.count) * (whole / elements));
        // The MPI library's own sum moves as much as a ring does, at best.
        AllreduceAlgorithm algorithm = algorithm_for(spec, size);
        if (algorithm == AllreduceAlgorithm::native) algorithm = AllreduceAlgorithm::ring;
        for (int rank = 0; rank < ranks; ++rank)
            for (const Route::Out& out : make_route(algorithm, rank, lambda, bucket.range).outs) {
                ++messages;
                bytes += static_cast<double>(out.what.count) * (whole / elements);
            }
    }
    const double all = static_cast<double>(lambda) / ranks;
    plan.messages = *plan.updates * messages * all + 2 * *plan.gradients + *plan.updates;
    plan.network_bytes = *plan.updates * bytes * all;
    if (scenario.trace.updates) plan.disk_bytes = *plan.disk_bytes + *plan.gradients * round_row;
    if (scenario.trace.layers)
        plan.disk_bytes = *plan.disk_bytes + *plan.gradients *
                                                 static_cast<double>(make_buckets(scenario, loaded.parameters).size()) *
                                                 round_row;
}

}  // namespace

int gradients_of_update(const Scenario& scenario) {
    return traits_of(scenario).gradients;
}

Estimate estimate(const Loaded& loaded) {
    const Scenario& scenario = loaded.scenario;
    const std::int64_t slice = scenario.workers.slice_size();
    const CommunicationSpec& communication = scenario.workers.communication;
    Estimate result;
    result.slices = (loaded.samples + slice - 1) / slice;
    result.last_slice = loaded.samples - (result.slices - 1) * slice;
    result.per_update = gradients_of_update(scenario);
    const StopSpec& stop = scenario.stop;
    const auto consider = [&](double gradients, double pushes, const char* name) {
        if (result.gradients && *result.gradients <= gradients) return;
        result.gradients = gradients;
        result.pushes = pushes;
        result.limited_by = name;
    };
    if (stop.epochs) {
        const double whole = std::floor(*stop.epochs);
        const auto samples = static_cast<double>(loaded.samples);
        consider(whole * gradients_of(loaded, samples) + gradients_of(loaded, (*stop.epochs - whole) * samples),
                 whole * static_cast<double>(result.slices) + slices_of_rest(loaded, *stop.epochs), "epochs");
    }
    const double every = communication.push_every;
    if (stop.gradients) {
        const double pushes = std::ceil(static_cast<double>(*stop.gradients) / every);
        consider(pushes * every, pushes, "gradients");
    }
    if (stop.updates) {
        const double pushes = pushes_of(loaded, result, static_cast<double>(*stop.updates));
        consider(pushes * every, pushes, "updates");
    }
    if (!result.gradients) return result;
    const double gradients = *result.gradients;
    result.updates = updates_of(loaded, result);
    // A push and a pull each; where the protocol does not broadcast an inquiry, and before it an OK where it says one.
    const double pushes = *result.pushes;
    const double weights = std::max(pushes / communication.pull_every, 1.0);
    const double answers = std::max(pushes, 1.0);
    const Word word = traits_of(scenario).word;
    result.messages = pushes + answers + (word == Word::ok ? 2 * pushes : word == Word::inquiry ? pushes : 0);
    result.network_bytes = pushes * static_cast<double>(scenario.cost.push_bytes) +
                           weights * static_cast<double>(scenario.cost.pull_bytes);
    if (const Tree tree = make_tree(scenario); !tree.star()) {
        // Words go from relay to relay, records of sums, too, and weights once for each update at most.
        const double relayed = relayed_messages(scenario, pushes);
        result.messages = *result.messages * (1 + tree.depth()) + relayed;
        result.network_bytes = *result.network_bytes + relayed * static_cast<double>(scenario.cost.push_bytes) +
                               std::min(pushes, *result.updates * static_cast<double>(tree.relays().size())) *
                                   static_cast<double>(scenario.cost.pull_bytes);
    }
    const double shards = make_shards(scenario, loaded.parameters).used();
    result.messages = *result.messages * shards;
    double disk = 4000;
    if (scenario.trace.gradients) disk += std::min(pushes, gradients / scenario.trace.every) * gradient_row;
    if (scenario.trace.gradients && scenario.topology == "sharded") disk += shards * gradients * shard_row_bytes;
    if (scenario.trace.updates) disk += shards * *result.updates * update_row;
    if (scenario.trace.timeline) disk += gradients * timeline_of_gradient;
    if (scenario.trace.events) disk += gradients * events_of_gradient;
    if (scenario.trace.updates && scenario.protocol.averages()) disk += *result.updates * round_row;
    result.disk_bytes = disk;
    if (scenario.protocol.averages()) average(loaded, result);
    if (scenario.protocol.reduces()) reduce(loaded, result);
    return result;
}

double wall_seconds(const Loaded& loaded, const Estimate& plan) {
    if (!plan.gradients) return 0;
    constexpr double flops_per_core = 5e9;
    const Scenario& scenario = loaded.scenario;
    const double messages_per_s = scenario.cluster.network.model == "flow" ? 1e6 : 3e5;
    double seconds = *plan.messages / messages_per_s;
    if (!scenario.model.gradients) return seconds;
    const double per_sample = learn::task_size(scenario).flops_per_sample;
    const double samples = *plan.gradients * std::min<double>(scenario.workers.batch_size, double(loaded.samples));
    const int machine = learn::usable_cores();
    const double cores = scenario.pool_threads > 0 ? std::min(machine, scenario.pool_threads) : machine;
    return seconds + samples * per_sample / (flops_per_core * cores);
}

std::string bytes_text(double bytes) {
    const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 6; ++unit) bytes /= 1000;
    return fmt::format("{:.4g} {}", bytes, units[unit]);
}

std::string seconds_text(double seconds) {
    if (seconds <= 0) return "0 s";
    if (seconds < 1e-3) return fmt::format("{:.4g} us", seconds * 1e6);
    if (seconds < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
    if (seconds < 7200) return fmt::format("{:.4g} s", seconds);
    return seconds < 172800 ? fmt::format("{:.4g} h", seconds / 3600) : fmt::format("{:.4g} d", seconds / 86400);
}

std::string count_text(double count) {
    std::string digits = fmt::format("{:.0f}", count);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
        digits.insert(static_cast<std::size_t>(at), ",");
    }
    return digits;
}

}  // namespace rubato::cli
