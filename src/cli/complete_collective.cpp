#include "cli/complete_collective.hpp"

#include "cli/complete.hpp"
#include "cli/complete_averaging.hpp"
#include "cli/without_pushes.hpp"

#include <string>

namespace rubato::cli {

namespace {

/// The library sums what its ranks have, in its own messages.
void check_native(const Node& root) {
    const Node* algorithm = root.at("protocol").find("algorithm");
    if (algorithm == nullptr || algorithm->text != "native") return;
    if (const Node* rank = root.at("execution").find("workers_per_rank"); rank != nullptr && rank->whole() > 1)
        refuse(*rank, "execution.workers_per_rank", "\"native\" sums what ranks have, of a worker each: expected 1");
    const Node* emulate = root.at("execution").find("emulate");
    const Node* messages = emulate != nullptr ? emulate->find("messages") : nullptr;
    if (messages != nullptr && messages->boolean)
        refuse(*messages, "execution.emulate.messages",
               "\"native\" sums by messages of the MPI library, which nobody can make longer: expected false, or "
               "\"ring\" as protocol.algorithm");
}

}  // namespace

void complete_collective(const Node& root) {
    if (family_of(root) != Family::replicas) return;
    refuse_without_pushes(
        root,
        {.sampling = "has nobody who deals slices of an epoch",
         .interval = "has no server to push to or to pull from: expected 1",
         .rule = "applies sums of all workers' gradients, all of one staleness: expected \"none\"",
         .momentum = "has one staleness, which is known beforehand: expected \"configured\"",
         .faults =
             "sums what all workers have, and a sum without one of them would be another sum: no worker may crash",
         .pause = "",
         .network = "not yet built for workers that talk with each other"});
    check_native(root);
    const Node* checkpoint = root.at("execution").find("checkpoint");
    if (checkpoint != nullptr && root.at("protocol").at("name").text == "no-comm")
        refuse(*checkpoint, "execution.checkpoint",
               "\"no-comm\" has another model in each worker, of which one could be saved: expected another protocol");
}

void require_sums(const Loaded& loaded, const std::string& backend) {
    const ProtocolSpec& protocol = loaded.scenario.protocol;
    if (backend == "mpi" || !protocol.reduces() || !protocol.collective.native()) return;
    refuse(loaded.tree.at("protocol").at("algorithm"), "protocol.algorithm",
           "\"native\" is the sum of the MPI library, which backend " + backend +
               " does not have: expected --backend mpi, or an algorithm that is made of messages and the same "
               "everywhere, such as \"ring\" or \"rabenseifner\"");
}

void check_collective(const Node& root, const Scenario& scenario, std::int64_t parameters) {
    // The library takes proposals beside its sums.
    if (!scenario.protocol.collective.adaptive || scenario.protocol.collective.native()) return;
    const std::int64_t elements = parameters > 0 ? parameters : scenario.cost.push_bytes;
    if (elements >= scenario.lambda()) return;
    refuse(root.at("protocol").at("name"), "protocol.name",
           "\"adaptive-delay\" sends proposals with the parts of a gradient, which has " + std::to_string(elements) +
               " elements for " + std::to_string(scenario.lambda()) + " workers: expected as many at least");
}

}  // namespace rubato::cli
