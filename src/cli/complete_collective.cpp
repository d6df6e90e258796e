#include "cli/complete_collective.hpp"

#include "cli/complete.hpp"
#include "cli/without_pushes.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace rubato::cli {

bool reduces(const Node& root) {
    constexpr std::string_view names[] = {"allreduce", "no-comm", "layer-wise", "delayed", "adaptive-delay"};
    return std::find(std::begin(names), std::end(names), root.at("protocol").at("name").text) != std::end(names);
}

void complete_collective(const Node& root) {
    if (!reduces(root)) return;
    refuse_without_pushes(root,
                          {.sampling = "has nobody who deals slices of an epoch",
                           .interval = "has no server to push to or to pull from: expected 1",
                           .rule = "applies sums of all workers' gradients, all of one staleness: expected \"none\"",
                           .momentum = "has one staleness, which is known beforehand: expected \"configured\"",
                           .faults = "sums what all workers have, and goes on with all of them: not yet built",
                           .pause = "not yet built without a server: expected \"deferred\" or \"rank\"",
                           .network = "not yet built for workers that talk with each other"});
    if (const Node* checkpoint = root.at("execution").find("checkpoint"))
        refuse(*checkpoint, "execution.checkpoint", "not yet built without a server");
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
