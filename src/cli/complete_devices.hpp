// Device classes and measured figures: defaults that depend on other keys, and what has no meaning.
#pragma once

#include "cli/node.hpp"

#include <string>
#include <vector>

namespace rubato::cli {

/// After the walk: classes that workers name exist, curves are whole, quantiles ascend; levels and the means of
/// quantiles are filled in. Throws InputError.
void complete_devices(Node& root, std::vector<std::string>& notes);

}  // namespace rubato::cli
