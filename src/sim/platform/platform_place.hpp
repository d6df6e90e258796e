// Places in a platform file, for messages, and what holds for all shapes.
#pragma once

#include "sim/platform/platform_json.hpp"

namespace rubato::sim {

/// A place in the file, for messages: "p.json: /hosts/3/bandwidth: "; and what holds for the whole file.
struct Place {
    std::string file;
    std::string path;
    PlatformLimits limits = {};
    Place operator/(const std::string& key) const { return {file, path + "/" + key, limits}; }
    /// Throws PlatformError, one line of limited length.
    [[noreturn]] void fail(const std::string& message) const;
};

/// These throw PlatformError for more than the limits of the place.
void check_hosts(double hosts, const Place& place);
void check_links(double links, const Place& place);

std::string product_text(const auto& factors) {
    std::string text;
    for (const auto factor : factors) text += (text.empty() ? "" : " * ") + std::to_string(factor);
    return text;
}

double product_of(const auto& factors) {
    double product = 1;
    for (const auto factor : factors) product *= static_cast<double>(factor);
    return product;
}

}  // namespace rubato::sim
