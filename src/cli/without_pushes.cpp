#include "cli/without_pushes.hpp"

#include "cli/complete.hpp"

namespace rubato::cli {
namespace {

void check_workers(const Node& workers, const std::string& its, const Reasons& reasons) {
    if (const Node* pipeline = workers.find("pipeline"); pipeline != nullptr && pipeline->text == "overlap")
        refuse(*pipeline, "workers.pipeline", its + "says by itself what workers overlap: expected \"blocking\"");
    const Node* communication = workers.find("communication");
    if (communication == nullptr) return;
    for (const char* key : {"push_every", "pull_every"})
        if (const Node& every = communication->at(key); every.whole() > 1)
            refuse(every, std::string("workers.communication.") + key, its + reasons.interval);
}

void check_optimizer(const Node& optimizer, const std::string& its, const Reasons& reasons) {
    const Node& rule = optimizer.at("staleness_rule");
    const Node* name = rule.is(Node::Kind::string) ? &rule : rule.find("name");
    if (name == nullptr || name->text != "none") refuse(rule, "optimizer.staleness_rule", its + reasons.rule);
    const Node* momentum = optimizer.find("momentum_rule");
    if (momentum != nullptr && momentum->text == "decoupled")
        refuse(*momentum, "optimizer.momentum_rule", its + reasons.momentum);
}

void check_run(const Node& root, const std::string& its, const Reasons& reasons) {
    if (root.find("schedule"))
        refuse(root.at("protocol").at("name"), "protocol.name",
               "a schedule tells of workers that push to one server: expected \"hardsync\", \"n-softsync\" or "
               "\"async\" beside it");
    if (const Node* warm = root.at("protocol").find("warm_start"))
        refuse(*warm, "protocol.warm_start", its + "has no server that hardsync could begin with: not yet built");
    const auto& faults = root.at("faults").items;
    for (std::size_t i = 0; i < faults.size() && !reasons.faults.empty(); ++i)
        if (faults[i].find("workers") || faults[i].find("hosts"))
            refuse(faults[i], "faults[" + std::to_string(i) + "]", its + reasons.faults);
    if (const Node* mode = root.at("evaluate").find("mode");
        mode != nullptr && mode->text == "pause" && !reasons.pause.empty())
        refuse(*mode, "evaluate.mode", reasons.pause);
    const Node* emulate = root.at("execution").find("emulate");
    const Node* network = emulate ? emulate->find("network") : nullptr;
    if (network != nullptr && network->boolean) refuse(*network, "execution.emulate.network", reasons.network);
}

}  // namespace

void refuse_without_pushes(const Node& root, const Reasons& reasons) {
    const std::string its = "\"" + root.at("protocol").at("name").text + "\" ";
    if (const Node& topology = root.at("topology").at("name"); topology.text != "star")
        refuse(topology, "topology.name", its + "says by itself who talks with whom: expected \"star\"");
    if (const Node& sampling = root.at("data").at("sampling"); sampling.text == "shared-epoch")
        refuse(sampling, "data.sampling", its + reasons.sampling + ": expected \"strided\", \"random\" or \"sharded\"");
    check_workers(root.at("workers"), its, reasons);
    check_optimizer(root.at("optimizer"), its, reasons);
    check_run(root, its, reasons);
}

}  // namespace rubato::cli
