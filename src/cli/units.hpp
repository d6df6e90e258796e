// Quantities with units in scenarios: the spelling of platform files (sim/platform/units.hpp), under the schema's
// names.
#pragma once

#include "sim/platform/units.hpp"

#include <string_view>

namespace rubato::cli {

using sim::parse_quantity;
using sim::Quantity;

/// "bandwidth", "time", "speed", "flops" or "bytes" of the schema's x-unit. Throws std::logic_error for another word.
Quantity quantity_named(std::string_view name);

/// Unit of a plain number of such a quantity: "bytes/s", "s", ... Throws std::logic_error for another word.
std::string_view number_unit(std::string_view name);

/// An example of the spelling, for messages.
std::string_view example(Quantity quantity);

}  // namespace rubato::cli
