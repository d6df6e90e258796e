#include "cli/complete_collective.hpp"

#include "cli/complete.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace rubato::cli {
namespace {

void check_workers(const Node& root, const std::string& its) {
    const Node& workers = root.at("workers");
    if (const Node* pipeline = workers.find("pipeline"); pipeline != nullptr && pipeline->text == "overlap")
        refuse(*pipeline, "workers.pipeline", its + "says by itself what workers overlap: expected \"blocking\"");
    const Node* communication = workers.find("communication");
    if (communication == nullptr) return;
    for (const char* key : {"push_every", "pull_every"})
        if (const Node& every = communication->at(key); every.whole() > 1)
            refuse(every, std::string("workers.communication.") + key,
                   its + "has no server to push to or to pull from: expected 1");
}

void check_optimizer(const Node& optimizer, const std::string& its) {
    const Node& rule = optimizer.at("staleness_rule");
    const Node* name = rule.is(Node::Kind::string) ? &rule : rule.find("name");
    if (name == nullptr || name->text != "none")
        refuse(rule, "optimizer.staleness_rule",
               its + "applies sums of all workers' gradients, all of one staleness: expected \"none\"");
    const Node* momentum = optimizer.find("momentum_rule");
    if (momentum != nullptr && momentum->text == "decoupled")
        refuse(*momentum, "optimizer.momentum_rule",
               its + "has one staleness, which is known beforehand: expected \"configured\"");
}

void check_run(const Node& root, const std::string& its) {
    if (root.find("schedule"))
        refuse(root.at("protocol").at("name"), "protocol.name",
               "a schedule tells of workers that push to one server: expected \"hardsync\", \"n-softsync\" or "
               "\"async\" beside it");
    if (const Node* warm = root.at("protocol").find("warm_start"))
        refuse(*warm, "protocol.warm_start", its + "has no server that hardsync could begin with: not yet built");
    const auto& faults = root.at("faults").items;
    for (std::size_t i = 0; i < faults.size(); ++i)
        if (faults[i].find("workers") || faults[i].find("hosts"))
            refuse(faults[i], "faults[" + std::to_string(i) + "]",
                   its + "sums what all workers have, and goes on with all of them: not yet built");
    if (const Node* mode = root.at("evaluate").find("mode"); mode != nullptr && mode->text == "pause")
        refuse(*mode, "evaluate.mode", "not yet built without a server: expected \"deferred\" or \"rank\"");
    const Node& execution = root.at("execution");
    if (const Node* checkpoint = execution.find("checkpoint"))
        refuse(*checkpoint, "execution.checkpoint", "not yet built without a server");
    const Node* emulate = execution.find("emulate");
    const Node* network = emulate ? emulate->find("network") : nullptr;
    if (network != nullptr && network->boolean)
        refuse(*network, "execution.emulate.network", "not yet built for workers that talk with each other");
}

}  // namespace

bool reduces(const Node& root) {
    constexpr std::string_view names[] = {"allreduce", "no-comm", "layer-wise", "delayed", "adaptive-delay"};
    return std::find(std::begin(names), std::end(names), root.at("protocol").at("name").text) != std::end(names);
}

void complete_collective(const Node& root) {
    if (!reduces(root)) return;
    const std::string its = "\"" + root.at("protocol").at("name").text + "\" ";
    if (const Node& topology = root.at("topology").at("name"); topology.text != "star")
        refuse(topology, "topology.name", its + "says by itself who talks with whom: expected \"star\"");
    if (const Node& sampling = root.at("data").at("sampling"); sampling.text == "shared-epoch")
        refuse(sampling, "data.sampling",
               its + "has nobody who deals slices of an epoch: expected \"strided\", \"random\" or \"sharded\"");
    check_workers(root, its);
    check_optimizer(root.at("optimizer"), its);
    check_run(root, its);
}

void check_collective(const Node& root, const Scenario& scenario, std::int64_t parameters) {
    if (!scenario.protocol.collective.adaptive) return;
    const std::int64_t elements = parameters > 0 ? parameters : scenario.cost.push_bytes;
    if (elements >= scenario.lambda()) return;
    refuse(root.at("protocol").at("name"), "protocol.name",
           "\"adaptive-delay\" sends proposals with the parts of a gradient, which has " + std::to_string(elements) +
               " elements for " + std::to_string(scenario.lambda()) + " workers: expected as many at least");
}

}  // namespace rubato::cli
