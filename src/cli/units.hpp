// Quantities with units, spelt as SimGrid spells them. bps is bits a second, Bps is bytes a second.
#pragma once

#include <string>
#include <string_view>

namespace rubato::cli {

enum class Quantity { bandwidth, time, speed, flops, bytes };

/// "bandwidth", ... to Quantity. Throws std::logic_error for another word.
Quantity quantity_named(std::string_view name);

/// An example of the spelling, for messages: "10Gbps or 1.25GBps".
std::string_view example(Quantity quantity);

/// Value in bytes/s, s, flop/s, flop or bytes. Throws std::invalid_argument with what was expected, and a suggestion
/// where the unit is near a known one.
double parse_quantity(std::string_view text, Quantity quantity);

}  // namespace rubato::cli
