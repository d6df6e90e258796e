#include "cli/guarantees.hpp"

#include "cli/protocol_text.hpp"

#include <utility>

namespace rubato::cli {
namespace {

/// Gradients that wait for others when the data is used up make no update.
std::string leftover_sentence(const PolicyTraits& policy) {
    return "where the last gradients are too few for an update, up to " + std::to_string(policy.gradients - 1) +
           " are left over: their samples count, and nothing is learnt of them";
}

std::string epoch_sentence(const Scenario& scenario, bool barrier, bool drops) {
    if (scenario.protocol.reduces() && scenario.data.sampling != Sampling::random)
        return "each sample is used exactly once an epoch; all workers begin an epoch together";
    if (scenario.protocol.gossips() && scenario.data.sampling == Sampling::strided)
        return "an epoch is N samples of steps; those under way when a run has come to its end are still counted";
    if (scenario.protocol.averages() && (!scenario.protocol.averages_in_rounds() || scenario.protocol.streams()) &&
        scenario.data.sampling == Sampling::strided)
        return "an epoch is N samples in the joint model; the exchange that reaches the end of a run may go beyond it";
    if (scenario.protocol.averages() && scenario.data.sampling == Sampling::strided)
        return "an epoch is N samples in the joint model; the last round of a run is cut to fit, to whole steps of all "
               "workers";
    switch (scenario.data.sampling) {
        case Sampling::shared_epoch:
            return drops ? "each sample is applied exactly once an epoch: a batch whose gradient is dropped is dealt "
                           "again"
                         : "each sample is used exactly once an epoch; the last slice is cut to fit";
        case Sampling::strided:
            return barrier ? "each sample is used exactly once an epoch"
                           : "with uneven workers an epoch is not an exact pass: the server counts accepted samples";
        case Sampling::random:
            return "samples are drawn with replacement: an epoch is N samples, some twice, some never";
        case Sampling::sharded:
            return "each worker passes over its own part; an epoch is N accepted samples, whoever sent them";
    }
    return "";
}

std::string order_sentence(const Scenario& scenario, bool barrier) {
    if (!scenario.schedule.trace.empty() && !barrier && scenario.data.sampling == Sampling::shared_epoch)
        return "who gets which slice follows from the schedule: the same in every run";
    switch (scenario.data.sampling) {
        case Sampling::shared_epoch:
            return barrier
                       ? "rounds are dealt in worker order: who gets which slice is the same in every run and backend"
                       : "who gets which slice depends on the order of events, and is recorded";
        case Sampling::strided:
        case Sampling::random:
        case Sampling::sharded: return "a worker's k-th batch is the same in every run and backend";
    }
    return "";
}

}  // namespace

std::vector<std::string> guarantees(const Scenario& scenario) {
    const PolicyTraits policy = traits_of(scenario);
    const int lambda = scenario.lambda();
    std::vector<std::string> sentences{epoch_sentence(scenario, policy.rounds, policy.drops),
                                       order_sentence(scenario, policy.rounds)};
    if (scenario.protocol.warm_epochs > 0)
        sentences.emplace_back("warm start: staleness is 0, and the weights are those of a hardsync run, bit for bit");
    if (policy.gradients > 1 && !policy.rounds && !policy.batch_order && !scenario.protocol.averages())
        sentences.push_back(leftover_sentence(policy));
    const bool fixed_order =
        (policy.rounds || scenario.protocol.averages_in_rounds() || scenario.protocol.reduces()) && policy.batch_order;
    if (!fixed_order && !scenario.schedule.trace.empty()) {
        sentences.emplace_back(
            "order and staleness are those of the schedule, whatever the rule: the same weights, bit "
            "for bit, in every run");
    } else {
        for (auto& sentence : staleness_sentences(scenario)) sentences.push_back(std::move(sentence));
        if (fixed_order) return sentences;
        sentences.push_back(lambda == 1 && !scenario.workers.overlaps() && !scenario.protocol.averages()
                                ? "one worker: the same weights, bit for bit, as sequential SGD"
                                : "simulated runs repeat bit for bit; real runs follow the order of arrival");
    }
    return sentences;
}

}  // namespace rubato::cli
