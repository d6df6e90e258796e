#include "core/needs.hpp"

#include "core/collective/plan.hpp"

namespace rubato {

Needs needs_of(const Scenario& scenario) {
    const ProtocolSpec& protocol = scenario.protocol;
    Needs needs;
    needs.gradient_slots = gradient_slots(protocol);
    if (protocol.reduces() && protocol.collective.native()) needs.library_sums = sums_at_once(protocol.collective);
    needs.layers = protocol.by_layers();
    needs.parts = protocol.averages_in_parts() || protocol.reduces() || protocol.averaging.spread.swarm;
    needs.replicas = protocol.reduces();
    needs.exchanges = protocol.averages() || protocol.reduces();
    needs.gradients_arrive = !protocol.averages();
    needs.receipts_tell =
        scenario.topology == "star" && !scenario.workers.communication.any() && protocol.family() == Family::policy;
    return needs;
}

}  // namespace rubato
