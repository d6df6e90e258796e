// Quantities with units, spelt as SimGrid spells them: bps is bits, Bps is bytes, and case matters.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace rubato::sim {

/// A quantity cannot be read; what() says what was found, what was expected and, where one is near, a suggestion.
struct UnitError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Quantity { bandwidth, duration, speed, size };

/// Value of `text` in bytes/s, seconds, flop/s or bytes. Prefixes are k M G T P E Z Y (powers of 1000) and Ki Mi Gi ...
/// (powers of 1024); durations are w d h m s ms us ns ps. Blanks around number and unit are allowed. A number without
/// unit is an error unless it is 0. Throws UnitError.
double parse_quantity(std::string_view text, Quantity quantity);

/// As parse_quantity, but a finite value of at least 0, or above 0 for bandwidths and speeds. Throws UnitError.
double parse_physical(std::string_view text, Quantity quantity);

/// "did you mean Gbps (bits) or GBps (bytes)?" for "gbps" and the like; empty where nothing is near.
std::string suggest_unit(std::string_view unit, Quantity quantity);

}  // namespace rubato::sim
