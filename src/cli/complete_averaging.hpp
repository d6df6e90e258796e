// Protocols that average models: their keys, and what they go together with.
#pragma once

#include "cli/node.hpp"

namespace rubato::cli {

/// Whether workers average models, or reduce gradients among themselves, instead of pushing gradients to a server.
bool averages(const Node& root);

/// Fills in what depends on other keys, and refuses what has no meaning or is not yet built. Nothing for others.
void complete_averaging(Node& root);

}  // namespace rubato::cli
