#include "cli/units.hpp"

#include "cli/suggest.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

namespace rubato::cli {
namespace {

using Units = std::vector<std::pair<std::string, double>>;

void add_prefixed(Units& units, const std::string& unit, double value, bool binary) {
    const char* decimal[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
    double factor = 1;
    for (const char* prefix : decimal) {
        units.emplace_back(prefix + unit, value * factor);
        factor *= 1000;
    }
    if (!binary) return;
    const char* powers[] = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"};
    factor = 1024;
    for (const char* prefix : powers) {
        units.emplace_back(prefix + unit, value * factor);
        factor *= 1024;
    }
}

const Units& units_of(Quantity quantity) {
    static const auto tables = [] {
        std::vector<Units> all(5);
        add_prefixed(all[0], "bps", 0.125, true);
        add_prefixed(all[0], "Bps", 1, true);
        all[1] = {{"ps", 1e-12}, {"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1},
                  {"m", 60},     {"h", 3600},  {"d", 86400}, {"w", 604800}};
        add_prefixed(all[2], "f", 1, false);
        add_prefixed(all[2], "flops", 1, false);
        all[3] = all[2];
        add_prefixed(all[4], "B", 1, true);
        return all;
    }();
    return tables[static_cast<std::size_t>(quantity)];
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

/// Units that differ in case only, or else the nearest one; "" when nothing is near.
std::string suggestion(std::string_view unit, Quantity quantity) {
    std::vector<std::string> names;
    std::vector<std::string> alike;
    std::string folded = lower(unit);
    if (quantity == Quantity::bandwidth) {
        if (const auto slash = folded.find("/s"); slash != std::string::npos) folded.replace(slash, 2, "ps");
    }
    for (const auto& [name, value] : units_of(quantity)) {
        names.push_back(name);
        if (lower(name) != folded) continue;
        const bool bits = quantity == Quantity::bandwidth && name.find('b') != std::string::npos;
        const bool bytes = quantity == Quantity::bandwidth && !bits;
        alike.push_back("\"" + name + "\"" + (bits ? " (bits)" : bytes ? " (bytes)" : ""));
    }
    if (!alike.empty()) return one_of(alike);
    const std::string near = nearest(unit, names);
    return near.empty() ? "" : "\"" + near + "\"";
}

}  // namespace

Quantity quantity_named(std::string_view name) {
    constexpr std::string_view names[] = {"bandwidth", "time", "speed", "flops", "bytes"};
    for (int i = 0; i < 5; ++i) {
        if (names[i] == name) return static_cast<Quantity>(i);
    }
    throw std::logic_error("no quantity " + std::string(name));
}

std::string_view example(Quantity quantity) {
    switch (quantity) {
        case Quantity::bandwidth: return "\"10Gbps\" (bits) or \"1.25GBps\" (bytes)";
        case Quantity::time: return "\"10us\" or \"5ms\"";
        case Quantity::speed: return "\"100Gf\"";
        case Quantity::flops: return "\"2Gf\"";
        case Quantity::bytes: return "\"350kB\" or \"1MiB\"";
    }
    return "";
}

double parse_quantity(std::string_view text, Quantity quantity) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto quoted = "\"" + std::string(text.substr(0, 60)) + "\"";
    if (error != std::errc() || !std::isfinite(value)) {
        throw std::invalid_argument("expected a number with a unit such as " + std::string(example(quantity)) +
                                    ", found " + quoted);
    }
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    while (unit.starts_with(' ')) unit.remove_prefix(1);
    if (unit.empty()) {
        throw std::invalid_argument("no unit in " + quoted + ": expected one such as " +
                                    std::string(example(quantity)) + ", or a bare number");
    }
    for (const auto& [name, factor] : units_of(quantity)) {
        if (name == unit) return value * factor;
    }
    const std::string near = suggestion(unit, quantity);
    throw std::invalid_argument(
        "unknown unit \"" + std::string(unit.substr(0, 40)) + "\" in " + quoted +
        (near.empty() ? ", expected one such as " + std::string(example(quantity)) : "; did you mean " + near + "?"));
}

}  // namespace rubato::cli
