// Virtual times from seconds.
#pragma once

#include "core/types.hpp"
#include "sim/network.hpp"

#include <algorithm>

namespace rubato::sim {

/// `seconds` after `begin`. Throws PlatformError where nanoseconds in 63 bits cannot tell that time any more.
inline Time after(Time begin, double seconds) {
    if (!(seconds * 1e9 < 9e18 - static_cast<double>(begin)))
        throw PlatformError("virtual time would pass 285 years: is a figure of cluster in the wrong unit?");
    // What std::llround does, without the call.
    const double ns = seconds * 1e9;
    const auto whole = static_cast<Time>(ns);
    return begin + whole + (ns - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

/// The end of a computation: a nanosecond later at least, so that time passes for who computes, and what is on its way
/// arrives in the end.
inline Time after_work(Time begin, double seconds) {
    return std::max(begin + 1, after(begin, seconds));
}

}  // namespace rubato::sim
