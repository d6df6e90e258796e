// The section `execution` of a checked tree.
#include "cli/build_scenario.hpp"
#include "cli/node_value.hpp"

namespace rubato::cli {
namespace {

EmulateSpec build_emulate(const Node& node, int lambda) {
    EmulateSpec spec;
    if (const Node* compute = node.find("compute")) spec.compute = compute->boolean;
    if (const Node* messages = node.find("messages")) spec.messages = messages->boolean;
    if (const Node* network = node.find("network")) spec.network = network->boolean;
    const Node* slow = node.find("slow");
    if (slow == nullptr) return spec;
    for (const auto& [worker, where, factor] : slow->members) {
        if (worker == "comment") continue;
        const int number = std::stoi(worker);
        if (number >= lambda)
            throw InputError(where, "execution.emulate.slow." + worker,
                             "there is no such worker: they are 0 to " + std::to_string(lambda - 1));
        spec.slow[number] = factor.number;
    }
    return spec;
}

CheckpointSpec build_checkpoint(const Node& node) {
    CheckpointSpec spec;
    if (const Node* every = node.find("every_epochs")) spec.every_epochs = every->number;
    if (const Node* every = node.find("every_updates")) spec.every_updates = every->whole();
    if (const Node* every = node.find("every_s")) spec.every_s = quantity(*every, Quantity::duration);
    if (!spec.any())
        throw InputError(node.where, "execution.checkpoint", "expected one of every_epochs, every_updates or every_s");
    return spec;
}

}  // namespace

void build_execution(const Node& execution, Scenario& scenario) {
    scenario.threads_per_worker = to_int(execution.at("threads_per_worker"));
    scenario.stall_timeout_s = quantity(execution.at("stall_timeout_s"), Quantity::duration);
    scenario.pool_threads = to_int(execution.at("pool_threads"));
    scenario.workers_per_rank = to_int(execution.at("workers_per_rank"));
    if (const Node* checkpoint = execution.find("checkpoint")) scenario.checkpoint = build_checkpoint(*checkpoint);
    if (const Node* emulate = execution.find("emulate")) scenario.emulate = build_emulate(*emulate, scenario.lambda());
}

}  // namespace rubato::cli
