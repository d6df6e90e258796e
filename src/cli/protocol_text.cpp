#include "cli/protocol_text.hpp"

#include <fmt/format.h>

namespace rubato::cli {
namespace {

std::string dssp_text(const DsspSpec& spec) {
    constexpr const char* modes[] = {"literal_next", "literal_full", "strict"};
    return fmt::format("dssp, {}: an update for every gradient; lower bound {}, grants of up to {} iterations",
                       modes[static_cast<int>(spec.mode)], spec.lower_bound, spec.r_max);
}

std::string admission_text(const ProtocolSpec& protocol, int count) {
    constexpr const char* ways[] = {"pace", "discard", "withhold"};
    return fmt::format("admission, {}: an update for {} {} gradient{}, of staleness at most {}",
                       ways[static_cast<int>(protocol.admit)], protocol.admit == Admit::withhold ? "at least" : "every",
                       count, count == 1 ? "" : "s", *protocol.bound);
}

std::string plugin_text(const Policy& policy, int count) {
    const std::string of_one = count == 1 ? "every gradient" : fmt::format("every {} gradients", count);
    return fmt::format("plugin {}: an update for {}", rubato::name(policy), of_one);
}

/// Of an iteration that starts at most `bound` ahead of the slowest worker: each other worker pushes at most
/// 2 bound + 1 times between its read and its update.
std::string bounded_lead(std::int64_t bound, int lambda) {
    return fmt::format(
        "an iteration starts at most {} ahead of the slowest worker, which never waits; staleness is at most (lambda - "
        "1)(2 * {} + 1) = {}",
        bound, bound, (lambda - 1) * (2 * bound + 1));
}

std::string_view algorithm_name(AllreduceAlgorithm algorithm) {
    constexpr std::string_view names[] = {"ordered", "ring", "recursive-doubling", "rabenseifner", "tree", "native"};
    return names[static_cast<int>(algorithm)];
}

std::string collective_text(const ProtocolSpec& protocol, int lambda) {
    const CollectiveSpec& spec = protocol.collective;
    if (spec.mode == CollectiveMode::no_comm)
        return fmt::format("no-comm: each of {} workers applies its own gradients to a model of its own", lambda);
    std::string how(algorithm_name(spec.algorithm));
    if (spec.small_bytes >= 0)
        how = fmt::format("{} up to {} bytes, else {}", algorithm_name(spec.small), spec.small_bytes, how);
    const std::string sum = fmt::format("one gradient of each of {} workers, summed among them ({})", lambda, how);
    if (spec.mode == CollectiveMode::sync) return "allreduce: " + sum + ", and then applied";
    if (spec.mode == CollectiveMode::layer_wise) {
        constexpr std::string_view orders[] = {"when all are there", "from the last to the first", "as they come"};
        return "layer-wise: " + sum + ", layers while earlier ones are computed; applied " +
               std::string(orders[static_cast<int>(spec.order)]);
    }
    if (spec.adaptive)
        return fmt::format("adaptive-delay: {} beside the next 0 to {}, chosen anew every {} iterations", sum,
                           spec.max_delay, spec.adapt_every);
    return fmt::format("delayed: {} beside the next {}, and applied then", sum, spec.delay);
}

std::string averaging_text(const ProtocolSpec& protocol, int lambda) {
    const AveragingSpec& spec = protocol.averaging;
    if (spec.gradients)
        return fmt::format(
            "{}, gradients: one of each of {} workers, reduced over a tree; the driver applies their mean",
            protocol.name, lambda);
    if (protocol.streams()) {
        const StreamSpec& stream = spec.stream;
        const int every = spec.tau / stream.fragments;
        return fmt::format(
            "streaming-diloco: one of {} fragment{} every {} step{}, averaged over a tree{}; merged {} steps later, of "
            "which a worker keeps {:g} of its own; outer steps of rate {:g}, Nesterov momentum {:g}",
            stream.fragments, stream.fragments == 1 ? "" : "s", every, every == 1 ? "" : "s",
            stream.overlap > 0 ? " beside the steps" : "", stream.overlap, stream.keep, spec.outer_learning_rate,
            spec.outer_momentum);
    }
    if (protocol.averages_in_parts()) {
        const PhasesSpec& phases = spec.phases;
        return fmt::format(
            "mpca: {} phase{} over {} shard{}; workers take steps without ever waiting, {}, and count in the mean of a "
            "shard {}",
            phases.phases, phases.phases == 1 ? "" : "s", phases.shards, phases.shards == 1 ? "" : "s",
            phases.alpha.zero() ? "drawn to nothing" : "drawn to the joint model",
            phases.by_steps ? "as often as they took steps" : "once each");
    }
    if (protocol.gossips())
        return fmt::format(
            "gosgd: after {} step{} of its own a worker hands its model, and half of its weight, to a random other "
            "one, "
            "which takes the weighted mean of the two",
            spec.tau, spec.tau == 1 ? "" : "s");
    if (protocol.name == "async-diloco") {
        const int pushes = spec.delayed.pushes;
        return fmt::format(
            "async-diloco: after {}{} step{} of its own a worker pushes what it made of the joint model, which moves "
            "by "
            "{:.4g} of it at once, and by momentum {:g} with every {}",
            spec.delayed.dylu ? "up to " : "", spec.tau, spec.tau == 1 ? "" : "s",
            spec.outer_learning_rate / (spec.delayed.whole ? 1 : pushes), spec.outer_momentum,
            pushes == 1 ? "push" : fmt::format("{} pushes", pushes));
    }
    if (!protocol.averages_in_rounds())
        return fmt::format(
            "easgd: after {} step{} of its own a worker moves by {:.4g} of the way to the joint model, and that as far "
            "towards it",
            spec.tau, spec.tau == 1 ? "" : "s", spec.alpha);
    std::string text =
        fmt::format("{}: {} worker{}, {} step{} of {} own, then the mean of the models over a tree", protocol.name,
                    lambda, lambda == 1 ? "" : "s", spec.tau, spec.tau == 1 ? "" : "s", lambda == 1 ? "its" : "their");
    if (spec.outer_learning_rate != 1 || spec.outer_momentum > 0)
        text += fmt::format("; an outer step towards it of rate {:g}, Nesterov momentum {:g}", spec.outer_learning_rate,
                            spec.outer_momentum);
    return text;
}

std::string no_bound(int count, int lambda) {
    return fmt::format(
        "staleness has no bound; its mean is at most (lambda - 1) / {} = {:.4g}, and near it where workers drift apart "
        "and the server is lightly loaded",
        count, static_cast<double>(lambda - 1) / count);
}

}  // namespace

PolicyTraits traits_of(const Scenario& scenario) {
    return traits(scenario.protocol, scenario.lambda());
}

std::string warm_start_text(const Scenario& scenario) {
    const double epochs = scenario.protocol.warm_epochs;
    return fmt::format("until {:g} epoch{} of samples are applied: hardsync, an update for every {} gradients", epochs,
                       epochs == 1 ? "" : "s", scenario.lambda());
}

std::string protocol_text(const Scenario& scenario) {
    const ProtocolSpec& protocol = scenario.protocol;
    const int lambda = scenario.lambda(), count = traits_of(scenario).gradients;
    const std::string& name = protocol.name;
    if (protocol.reduces()) return collective_text(protocol, lambda);
    if (protocol.averages()) return averaging_text(protocol, lambda);
    if (name == Hardsync::name) return fmt::format("hardsync: an update for every {} gradients, one a worker", lambda);
    if (name == Bsp::name && !protocol.per_gradient)
        return fmt::format("bsp, aggregated: a barrier, and an update for every {} gradients, one a worker", lambda);
    if (name == Bsp::name) return "bsp, per-gradient: an update for every gradient, and a barrier after each round";
    if (name == Ssp::name)
        return "ssp: an update for every gradient; bound " +
               (protocol.bound ? std::to_string(*protocol.bound) : "none");
    if (name == Dssp::name) return dssp_text(protocol.dssp);
    if (name == BoundedDelay::name)
        return fmt::format("bounded-delay: an update for every gradient; iteration t waits for {} t - {}",
                           protocol.single_dependency ? "iteration" : "all up to", protocol.k);
    if (name == BackupWorkers::name)
        return fmt::format("backup-workers: an update for the first {} of {} gradients", count, lambda);
    if (name == Rennala::name)
        return fmt::format("rennala: an update for every {} gradients of the present version", count);
    if (name == Ringmaster::name)
        return fmt::format("ringmaster: an update for every gradient of staleness below {}{}", protocol.delay_threshold,
                           protocol.cancel ? "; others are given up" : "");
    if (name == Admission::name) return admission_text(protocol, count);
    if (name == PluginPolicy::name) return plugin_text(make_policy(protocol, lambda), count);
    if (name != NSoftsync::name) return name + ": an update for every gradient";
    if (protocol.gradients_per_update > 0) return fmt::format("n-softsync: an update for every {} gradients", count);
    return fmt::format("n-softsync, n = {}: an update for every floor({} / {}) = {} gradients", protocol.n, lambda,
                       protocol.n, count);
}

std::string communication_text(const Scenario& scenario) {
    const CommunicationSpec& communication = scenario.workers.communication;
    if (!communication.any()) return {};
    return fmt::format(
        "{}, {}; a worker's own steps at rate {:g}; where the protocol counts gradients it counts pushes",
        communication.push_every == 1 ? "each gradient is pushed"
                                      : fmt::format("a push carries the sum of {} gradients", communication.push_every),
        communication.pull_every == 1 ? "each push is followed by a pull"
                                      : fmt::format("one of {} exchanges brings weights", communication.pull_every),
        communication.local_learning_rate.value_or(scenario.optimizer.learning_rate));
}

std::string pipeline_text(const Scenario& scenario) {
    if (!scenario.workers.overlaps()) return {};
    if (scenario.topology == "tree-downcast")
        return "overlap, latest: a push of depth one beside the computation; weights come unasked, and are passed on; "
               "workers draw their own batches";
    return scenario.workers.pull == Pull::prefetch
               ? "overlap, prefetch: a push and a pull of depth one beside the computation; one pull a gradient"
               : "overlap, latest: a push of depth one beside the computation; the newest weights that have come; "
                 "workers draw their own batches";
}

namespace {

/// Of one that has the whole model, or of a shard and its part.
std::vector<std::string> staleness_at_a_server(const Scenario& scenario) {
    const ProtocolSpec& protocol = scenario.protocol;
    const PolicyTraits policy = traits_of(scenario);
    if (scenario.workers.communication.pull_every > 1) {
        // Promises about staleness count from the pull of each gradient's own exchange.
        std::vector<std::string> sentences{"staleness counts from a worker's last pull, so that no bound holds for it"};
        if (policy.rounds && policy.batch_order)
            sentences.emplace_back("sums in slice order: the same weights, bit for bit, on every backend");
        return sentences;
    }
    const int lambda = scenario.lambda();
    if (protocol.streams())
        return {fmt::format("a worker waits for a fragment that has not come {} step{} after it handed on its own; "
                            "staleness is 1 for the steps before that, and 0 for others",
                            protocol.averaging.stream.overlap, protocol.averaging.stream.overlap == 1 ? "" : "s"),
                "means are taken in the order of the tree: the same weights, bit for bit, on every backend"};
    if (protocol.averages_in_parts())
        return {
            "nobody waits for anybody; a step is in the joint model once the first of its shards is; staleness "
            "counts versions since the worker last took what it was sent: no bound"};
    if (protocol.reduces()) {
        const CollectiveSpec& spec = protocol.collective;
        if (spec.mode == CollectiveMode::no_comm)
            return {"replicas diverge: figures are those of worker 0's, and no communication is faster"};
        const std::string bound = spec.adaptive ? fmt::format("staleness is the delay, {} at most", spec.max_delay)
                                  : spec.mode == CollectiveMode::delayed
                                      ? fmt::format("staleness is {} from gradient {} on", spec.delay, spec.delay)
                                      : std::string("staleness is 0");
        if (spec.native())
            return {
                bound + "; all replicas are alike, bit for bit, as far as the MPI library's sums are",
                "sums are the MPI library's: for runs with --backend mpi alone, and weights may differ in bits from "
                "run to run"};
        return {bound + "; all replicas are alike, bit for bit",
                spec.algorithm == AllreduceAlgorithm::ordered && spec.small == AllreduceAlgorithm::ordered
                    ? "sums are taken in the order of the workers: the same weights, bit for bit, on every backend"
                    : "the order of sums follows from the algorithm: the same weights, bit for bit, on every backend"};
    }
    if (protocol.gossips())
        return {
            "nobody waits for anybody; the weights of all workers, with what is under way, are 1 together",
            "a version is the mean of all models, made where they are evaluated, and at the end; every step is in the "
            "next one: staleness is 0"};
    if (protocol.name == "async-diloco")
        return {fmt::format(
            "nobody waits for others: a worker stops from its push to the new joint model; staleness counts versions "
            "from that to its next push: mean near lambda - 1 = {}, no bound",
            lambda - 1)};
    if (protocol.averages() && !protocol.averages_in_rounds())
        return {fmt::format(
            "nobody waits for others: a worker stops for a download, and uploads while it computes; staleness "
            "counts exchanges since its last one, its own included: mean near {}, no bound",
            lambda)};
    if (protocol.averages())
        return {"staleness is 0: all workers begin a round with the present joint model",
                "means are taken in the order of the tree: the same weights, bit for bit, on every backend"};
    if (scenario.topology == "tree-downcast")
        return {
            "workers compute on the newest weights that have come to them: staleness grows with the time that "
            "gradients and weights are on their way; no bound"};
    if (scenario.workers.overlaps())
        return {
            fmt::format("workers compute on what was current a gradient before: mean staleness about {:.4g} where "
                        "transfers are short, 2 lambda / c; no bound",
                        2.0 * lambda / policy.gradients)};
    const std::string& name = protocol.name;
    if (policy.rounds && policy.batch_order)
        return {"staleness is 0; a round never spans two epochs",
                scenario.has_relays()
                    ? "gradients are summed in the order of the tree: the same weights, bit for bit, on every backend"
                    : "gradients are summed in slice order: the same weights, bit for bit, on every backend"};
    if (policy.rounds) return {"the i-th gradient of a round has staleness i - 1; a round never spans two epochs"};
    if (name == Ssp::name && protocol.bound) return {bounded_lead(*protocol.bound, lambda)};
    const DsspSpec& dssp = protocol.dssp;
    if (name == Dssp::name && dssp.mode == DsspSpec::Mode::strict)
        return {bounded_lead(dssp.lower_bound + dssp.r_max, lambda)};
    if (name == Dssp::name)
        return {
            "the lead of the fastest worker has no bound: it may be granted more again and again; the slowest "
            "never waits"};
    if (name == BoundedDelay::name && !protocol.single_dependency)
        return {fmt::format("staleness is at most 2({} - 1) = {}", protocol.k, 2 * (protocol.k - 1))};
    if (name == BoundedDelay::name && lambda > 2) return {"staleness has no bound for more than two workers"};
    if (name == BackupWorkers::name || name == Rennala::name)
        return {"staleness of what is applied is 0; late gradients are dropped, and their batches dealt again"};
    if (name == Ringmaster::name)
        return {fmt::format("staleness of what is applied is below {}; the batches of other gradients are dealt again",
                            protocol.delay_threshold)};
    if (name == Admission::name)
        return {fmt::format("staleness of what is applied is at most {}, also after a resume", *protocol.bound)};
    if (name == PluginPolicy::name) return {"what bounds staleness is for the author of the plugin to say"};
    if (scenario.has_relays())
        return {
            fmt::format("staleness has no bound; its mean is above that of a star, {:.4g} at most, as gradients "
                        "wait in relays and weights pass through them",
                        static_cast<double>(lambda - 1) / policy.gradients)};
    return {no_bound(policy.gradients, lambda)};
}

}  // namespace

std::vector<std::string> staleness_sentences(const Scenario& scenario) {
    auto sentences = staleness_at_a_server(scenario);
    if (scenario.topology != "sharded") return sentences;
    if (const PolicyTraits policy = traits_of(scenario); policy.rounds && policy.batch_order)
        sentences.emplace_back("all shards have the same version in a round: the weights are those of one server");
    else
        sentences.emplace_back(
            "this holds for each shard and its own versions; a gradient may be computed on different ones");
    return sentences;
}

}  // namespace rubato::cli
