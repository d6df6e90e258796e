// The section `protocol`: defaults that depend on the number of workers, and combinations that have no meaning.
#pragma once

#include "cli/node.hpp"

namespace rubato::cli {

/// Throws InputError.
void complete_protocol(Node& root);

}  // namespace rubato::cli
