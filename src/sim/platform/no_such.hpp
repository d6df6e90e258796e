// Faults name hosts and links of the platform: what is said where there is none of that name.
#pragma once

#include "sim/network.hpp"
#include "sim/platform/suggest.hpp"

#include <string>
#include <vector>

namespace rubato::sim {

/// kind: "host" or "link".
inline PlatformError no_such(const std::string& kind, const std::string& name, std::vector<std::string> names) {
    const std::string near = nearest(name, names);
    std::string text = "the platform has no " + kind + " \"" + name + "\"";
    if (!near.empty()) return PlatformError(text + "; did you mean \"" + near + "\"?");
    constexpr std::size_t names_max = 8;
    if (names.size() > names_max) names.resize(names_max);
    return PlatformError(text + "; there are such as " + one_of(names, "and"));
}

}  // namespace rubato::sim
