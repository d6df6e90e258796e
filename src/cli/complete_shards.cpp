#include "cli/complete_shards.hpp"

#include "cli/complete.hpp"
#include "cli/node_value.hpp"
#include "cli/protocol_text.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace rubato::cli {
namespace {

bool is_sharded(const Node& root) {
    return root.at("topology").at("name").text == "sharded";
}

void check_workers(const Node& root) {
    const Node& workers = root.at("workers");
    const Node* communication = workers.find("communication");
    if (communication == nullptr) return;
    for (const char* key : {"push_every", "pull_every"})
        if (const Node& every = communication->at(key); every.whole() > 1)
            refuse(every, std::string("workers.communication.") + key,
                   "not yet built for sharded servers, whose workers take no steps of their own: expected 1");
}

void check_places(const Node& root) {
    if (root.at("topology").at("servers_on").text != "workers") return;
    const Node& cluster = root.at("cluster");
    if (const Node* host = cluster.find("server_host"))
        refuse(*host, "cluster.server_host",
               "topology.servers_on = workers puts the servers on hosts of workers: expected no host for a server");
    const Node* network = cluster.find("network");
    const Node* star = network ? network->find("star") : nullptr;
    const Node* bandwidth = star ? star->find("server_bandwidth") : nullptr;
    if (bandwidth != nullptr)
        refuse(*bandwidth, "cluster.network.star.server_bandwidth",
               "topology.servers_on = workers leaves the servers no links of their own: expected bandwidth alone");
}

}  // namespace

void complete_shards(const Node& root) {
    if (const Node* cost = root.find("cost"); cost != nullptr && !timing_only(root))
        if (const Node* layers = cost->find("layers"))
            refuse(*layers, "cost.layers", "the model that learns has layers of its own, which topology.split goes by");
    if (!is_sharded(root)) return;
    check_workers(root);
    check_places(root);
    if (root.find("schedule"))
        refuse(root.at("topology").at("name"), "topology.name",
               "a schedule tells of workers that push to one server: expected \"star\" beside it");
    if (const Node* warm = root.at("protocol").find("warm_start"))
        refuse(*warm, "protocol.warm_start",
               "not yet built for sharded servers, which would have to leave hardsync at one update");
    const Node& faults = root.at("faults");
    for (std::size_t i = 0; i < faults.items.size(); ++i)
        for (const char* key : {"workers", "hosts"})
            if (const Node* found = faults.items[i].find(key))
                refuse(*found, "faults[" + std::to_string(i) + "]." + key,
                       "not yet built for sharded servers, of which some may have a gradient of a lost worker and "
                       "others not; links may carry less");
    if (const Node* mode = root.at("evaluate").find("mode"); mode != nullptr && mode->text == "pause")
        refuse(*mode, "evaluate.mode",
               "not yet built for sharded servers, which would all have to hold the workers: expected \"deferred\" or "
               "\"rank\"");
    const Node& execution = root.at("execution");
    if (const Node* checkpoint = execution.find("checkpoint"))
        refuse(*checkpoint, "execution.checkpoint",
               "not yet built for sharded servers, which are at versions of their own");
}

ShardsSpec build_shards(const Node& topology) {
    ShardsSpec shards;
    if (topology.at("name").text != "sharded") return shards;
    shards.count = static_cast<int>(topology.at("shards").whole());
    shards.by_layers = topology.at("split").text == "layers";
    shards.beside_workers = topology.at("servers_on").text == "workers";
    return shards;
}

void check_shards(const Node& root, const Scenario& scenario) {
    if (scenario.topology != "sharded") return;
    if (timing_only(root) && scenario.cost.push_bytes == 0)
        refuse(root.at("cost").at("push_bytes"), "cost.push_bytes",
               "leaves the shards nothing to divide: expected 1 byte or more");
    const Node& protocol = root.at("protocol").at("name");
    if (scenario.protocol.name == "plugin")
        refuse(protocol, "protocol.name",
               "a policy of one's own may let workers go in the order in which gradients come, which is another one at "
               "every shard, so that they wait for each other: not yet built for sharded servers");
    if (traits_of(scenario).drops)
        refuse(
            protocol, "protocol.name",
            "\"" + scenario.protocol.name +
                "\" refuses gradients or has them given up, and shards would not agree on which: expected a protocol "
                "that takes in every gradient, such as \"hardsync\", \"n-softsync\" or \"ssp\"");
    if (scenario.optimizer.staleness_rule.looks_at_weights())
        refuse(root.at("optimizer").at("staleness_rule"), "optimizer.staleness_rule",
               "looks at the weights that a gradient was computed on, of which shards have different versions: not yet "
               "built for sharded servers");
}

void check_layers(const Node& root, const Scenario& scenario) {
    if (scenario.topology != "sharded" || !scenario.shards.by_layers || !scenario.layers.empty()) return;
    refuse(root.at("topology").at("split"), "topology.split",
           "\"layers\" needs layers, and nobody tells of any: give cost.layers, or a cost.model that has them (rubato "
           "list models), or split by \"bytes\"");
}

}  // namespace rubato::cli
