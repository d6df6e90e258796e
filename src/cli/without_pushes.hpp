// What all protocols refuse that take no pushes of gradients, because they average models or sum gradients among
// workers.
#pragma once

#include "cli/node.hpp"

#include <string>

namespace rubato::cli {

/// Why something has no meaning under a protocol, as it ends a message: each is what follows "NAME ", but `pause` and
/// `network`, which are whole.
struct Reasons {
    std::string sampling;  ///< data.sampling shared-epoch
    std::string interval;  ///< workers.communication
    std::string rule;      ///< optimizer.staleness_rule
    std::string momentum;  ///< optimizer.momentum_rule decoupled
    std::string faults;    ///< crashes of workers; empty: they are survived
    std::string pause;     ///< evaluate.mode pause
    std::string network;   ///< execution.emulate.network
};

/// Throws InputError at the first key that is refused. root: a scenario with its defaults.
void refuse_without_pushes(const Node& root, const Reasons& reasons);

}  // namespace rubato::cli
