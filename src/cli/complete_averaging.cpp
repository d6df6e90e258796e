#include "cli/complete_averaging.hpp"

#include "cli/complete.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace rubato::cli {
namespace {

void fill(Node& protocol, const std::string& key, Node value) {
    if (!protocol.find(key)) protocol.set(key, std::move(value), {});
}

void fill_keys(Node& protocol, std::int64_t lambda) {
    const std::string& name = protocol.at("name").text;
    const bool diloco = name == "diloco";
    const Node* exchange = protocol.find("exchange");
    if (exchange != nullptr && exchange->text == "gradients") {
        fill(protocol, "tau", Node::of(std::int64_t{1}));
        if (const Node& tau = protocol.at("tau"); tau.whole() != 1)
            refuse(tau, "protocol.tau",
                   "where gradients are exchanged there is one a round, and no step of a worker's own: expected 1");
        return;
    }
    fill(protocol, "tau", Node::of(std::int64_t{diloco ? 100 : 10}));
    if (name == "sparknet") return;
    if (name == "easgd") return fill(protocol, "alpha", Node::of(0.9 / static_cast<double>(lambda)));
    fill(protocol, "outer_learning_rate", Node::of(diloco ? 0.7 : 1.0));
    fill(protocol, "outer_momentum", Node::of(diloco ? 0.9 : 0.0));
}

void check_workers(const Node& root, const std::string& its) {
    const Node& workers = root.at("workers");
    if (const Node* pipeline = workers.find("pipeline"); pipeline != nullptr && pipeline->text == "overlap")
        refuse(*pipeline, "workers.pipeline", its + "says by itself what workers overlap: expected \"blocking\"");
    const Node* communication = workers.find("communication");
    if (communication == nullptr) return;
    for (const char* key : {"push_every", "pull_every"})
        if (const Node& every = communication->at(key); every.whole() > 1)
            refuse(every, std::string("workers.communication.") + key,
                   its + "says with protocol.tau how often workers exchange something: expected 1");
}

void check_optimizer(const Node& optimizer, const std::string& its) {
    const Node& rule = optimizer.at("staleness_rule");
    const Node* name = rule.is(Node::Kind::string) ? &rule : rule.find("name");
    if (name == nullptr || name->text != "none")
        refuse(rule, "optimizer.staleness_rule",
               its + "has workers take steps of their own, and applies no gradient of theirs: expected \"none\"");
    const Node* momentum = optimizer.find("momentum_rule");
    if (momentum != nullptr && momentum->text == "decoupled")
        refuse(*momentum, "optimizer.momentum_rule",
               its + "has no stale gradients that would act as momentum: expected \"configured\"");
}

void check_run(const Node& root, const std::string& its) {
    if (root.find("schedule"))
        refuse(root.at("protocol").at("name"), "protocol.name",
               "a schedule tells of workers that push to one server: expected \"hardsync\", \"n-softsync\" or "
               "\"async\" beside it");
    if (const Node* warm = root.at("protocol").find("warm_start"))
        refuse(*warm, "protocol.warm_start", its + "has no server that hardsync could begin with: not yet built");
    if (!root.at("faults").items.empty())
        refuse(root.at("faults").items.front(), "faults[0]", "not yet built for protocols that average");
    if (const Node* mode = root.at("evaluate").find("mode"); mode != nullptr && mode->text == "pause")
        refuse(*mode, "evaluate.mode", "not yet built for protocols that average: expected \"deferred\" or \"rank\"");
    const Node& execution = root.at("execution");
    if (const Node* checkpoint = execution.find("checkpoint"))
        refuse(*checkpoint, "execution.checkpoint", "not yet built for protocols that average");
    const Node* emulate = execution.find("emulate");
    const Node* network = emulate ? emulate->find("network") : nullptr;
    if (network != nullptr && network->boolean)
        refuse(*network, "execution.emulate.network",
               "not yet built for protocols that average, whose workers talk with each other");
}

}  // namespace

bool averages(const Node& root) {
    constexpr std::string_view names[] = {"sparknet", "local-sgd", "diloco", "easgd"};
    return std::find(std::begin(names), std::end(names), root.at("protocol").at("name").text) != std::end(names);
}

void complete_averaging(Node& root) {
    if (!averages(root)) return;
    const std::string its = "\"" + root.at("protocol").at("name").text + "\" ";
    fill_keys(*root.find("protocol"), worker_count(root));
    if (const Node& topology = root.at("topology").at("name"); topology.text != "star")
        refuse(topology, "topology.name", its + "says by itself who talks with whom: expected \"star\"");
    if (const Node& sampling = root.at("data").at("sampling"); sampling.text == "shared-epoch")
        refuse(sampling, "data.sampling",
               its +
                   "leaves workers to themselves between exchanges, so nobody deals them slices of an epoch that they "
                   "share: expected \"strided\", \"random\" or \"sharded\"");
    check_workers(root, its);
    check_optimizer(root.at("optimizer"), its);
    check_run(root, its);
}

}  // namespace rubato::cli
