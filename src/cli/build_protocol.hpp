// The section `protocol` of a checked scenario as a typed value.
#pragma once

#include "cli/node.hpp"
#include "core/scenario.hpp"

namespace rubato::cli {

ProtocolSpec build_protocol(const Node& protocol);

}  // namespace rubato::cli
