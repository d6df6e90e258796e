// Reading the fields of a JSON platform: values with units, whole numbers, names, and errors that name the place.
#pragma once

#include "sim/platform_json.hpp"
#include "sim/units.hpp"

#include <nlohmann/json.hpp>

namespace rubato::sim {

using Keys = std::vector<std::string>;

constexpr std::size_t levels_max = 16;

/// A place in the file, for messages: "p.json: /hosts/3/bandwidth: "; and what holds for the whole file.
struct Place {
    std::string file;
    std::string path;
    PlatformLimits limits = {};
    Place operator/(const std::string& key) const { return {file, path + "/" + key, limits}; }
    /// Throws PlatformError, one line of limited length.
    [[noreturn]] void fail(const std::string& message) const;
};

/// What was found, cut to a length that fits a message.
std::string found_text(const nlohmann::json& value);
/// Throws PlatformError for what is no object, or has another key.
void check_keys(const nlohmann::json& object, const Place& place, const Keys& allowed);
/// A figure with a unit, or a bare number in bytes/s, seconds or flop/s. Throws PlatformError.
double quantity(const nlohmann::json& object, const char* key, const Place& place, Quantity kind, double otherwise);
/// A whole number of at least 1. Throws PlatformError.
int whole(const nlohmann::json& value, const Place& place);
int count(const nlohmann::json& object, const char* key, const Place& place, int otherwise);
/// Throw PlatformError for more than the limits of the place.
void check_hosts(double hosts, const Place& place);
void check_links(double links, const Place& place);
/// "name" of the object. Throws PlatformError for what is no name.
std::string read_name(const nlohmann::json& object, const Place& place, const std::string& otherwise);
/// "bandwidth" and "latency" of the object. Throws PlatformError.
LinkFigures read_link(const nlohmann::json& object, const Place& place, const LinkFigures& otherwise);
/// The file's "switches", the root first, and where its hosts are below them. Throws PlatformError.
TreeShape read_tree(const nlohmann::json& root, const Place& top, const std::vector<StarHost>& hosts);

/// A list of whole numbers, one a level or dimension.
template <class T>
std::vector<T> wholes(const nlohmann::json& object, const char* key, const Place& place, const char* of) {
    const auto found = object.find(key);
    if (found == object.end()) place.fail("\"" + std::string(key) + "\" is missing; expected a number " + of);
    const Place at = place / key;
    if (!found->is_array() || found->empty() || found->size() > levels_max)
        at.fail("is " + found_text(*found) + "; expected a list of 1 to " + std::to_string(levels_max) +
                " whole numbers, one " + of);
    std::vector<T> values;
    for (std::size_t i = 0; i < found->size(); ++i)
        values.push_back(static_cast<T>(whole(found->at(i), at / std::to_string(i))));
    return values;
}

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
