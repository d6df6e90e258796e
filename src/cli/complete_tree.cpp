#include "cli/complete_tree.hpp"

#include "cli/complete.hpp"
#include "cli/protocol_text.hpp"
#include "core/relay.hpp"

#include <string>

namespace rubato::cli {
namespace {

bool is_tree(const Node& root) {
    const std::string& name = root.at("topology").at("name").text;
    return name == "tree" || name == "tree-downcast";
}

/// Weights that come unasked are for workers that never wait for any.
void check_downcast(const Node& root) {
    const Node& workers = root.at("workers");
    if (workers.at("pipeline").text != "overlap")
        refuse(workers.at("pipeline"), "workers.pipeline",
               "with topology \"tree-downcast\" weights come unasked, and nobody waits for them: expected \"overlap\", "
               "or topology \"tree\"");
    if (const Node& pull = workers.at("pull"); pull.text != "latest")
        refuse(pull, "workers.pull",
               "with topology \"tree-downcast\" weights come unasked: expected \"latest\", or topology \"tree\"");
}

/// Relays of a tree by host must be known without a platform: real runs have none.
void check_hosts(const Node& root) {
    const Node& workers = root.at("workers");
    if (workers.find("hosts")) return;
    const Node* groups = workers.find("groups");
    bool known = groups != nullptr || workers.find("per_host") != nullptr;
    if (groups)
        for (const Node& group : groups->items) known = known && group.find("per_host") != nullptr;
    if (!known)
        refuse(root.at("topology").at("leaves"), "topology.leaves",
               "\"hosts\" needs to know which workers share a host: set workers.hosts, or per_host");
}

}  // namespace

void complete_tree(const Node& root) {
    if (!is_tree(root)) return;
    if (root.at("topology").at("name").text == "tree-downcast") check_downcast(root);
    if (root.at("topology").at("leaves").text == "hosts") check_hosts(root);
    if (root.find("schedule"))
        refuse(root.at("topology").at("name"), "topology.name",
               "a schedule tells of workers that push to one server: expected \"star\" beside it");
    if (const Node* warm = root.at("protocol").find("warm_start"))
        refuse(*warm, "protocol.warm_start", "not yet built for a tree, whose relays would have to change with it");
    const Node& faults = root.at("faults");
    for (std::size_t i = 0; i < faults.items.size(); ++i)
        for (const char* key : {"workers", "hosts"})
            if (const Node* found = faults.items[i].find(key))
                refuse(*found, "faults[" + std::to_string(i) + "]." + key,
                       "not yet built for a tree, where gradients are lost with a relay; links may carry less");
    if (const Node* mode = root.at("evaluate").find("mode"); mode != nullptr && mode->text == "pause")
        refuse(*mode, "evaluate.mode",
               "not yet built for a tree, where gradients that wait in relays never come while workers are held: "
               "expected \"deferred\" or \"rank\"");
    if (const Node* checkpoint = root.at("execution").find("checkpoint"))
        refuse(*checkpoint, "execution.checkpoint", "not yet built for a tree, whose relays hold gradients");
}

void check_tree(const Node& root, const Scenario& scenario) {
    if (!scenario.has_relays()) return;
    const PolicyTraits policy = traits_of(scenario);
    if (policy.batch_order && !policy.rounds)
        refuse(root.at("protocol").at("name"), "protocol.name",
               "\"" + scenario.protocol.name +
                   "\" keeps the gradients of an update apart until the last one has come, and its server has room for "
                   "one from each child: not yet built for a tree");
    const StalenessRule& rule = scenario.optimizer.staleness_rule;
    const Node& node = root.at("optimizer").at("staleness_rule");
    if (rule.looks_at_weights())
        refuse(
            node, "optimizer.staleness_rule",
            "looks at the weights that a gradient was computed on, and a relay may have given its workers newer ones "
            "than the root knows of: not yet built for a tree");
    if (!rule.weighs_gradients()) return;
    const Tree tree = make_tree(scenario);
    for (const auto& place : tree.relays()) {
        RelayConfig relay;
        relay.place = place;
        relay.lambda = scenario.lambda();
        arrange(relay, policy);
        if (relay.gradients == 1 && !(relay.rounds && place.workers() > 1)) continue;
        refuse(node, "optimizer.staleness_rule",
               "weighs each gradient by itself, and relays add up those of " + std::string(scenario.protocol.name) +
                   " before the root sees them: expected a rule that looks at the update alone, such as \"inverse-n\", "
                   "or a protocol under which relays pass each gradient on by itself, such as \"async\"");
    }
}

}  // namespace rubato::cli
