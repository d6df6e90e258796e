// The section `protocol` of a checked scenario as a typed value.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

namespace rubato::cli {

/// Throws InputError for a plugin that cannot be loaded, or that refuses its constants.
ProtocolSpec build_protocol(const Node& protocol, int lambda);

}  // namespace rubato::cli
