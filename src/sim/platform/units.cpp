#include "sim/platform/units.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

namespace rubato::sim {

namespace {

/// A unit is worth times / over. The two stay apart, as 50 / 1e6 is the double nearest to 50 us and 50 * 1e-6 is not.
struct Unit {
    std::string name;
    double times = 1;
    double over = 1;
};

struct Kind {
    const char* name;
    const char* example;
    std::vector<Unit> units;  ///< without prefix
    bool prefixes;
};

const Kind& kind_of(Quantity quantity) {
    static const Kind bandwidth{"bandwidth", "1.25GBps (bytes) or 10Gbps (bits)", {{"Bps"}, {"bps", 1, 8}}, true};
    static const Kind duration{"duration",
                               "50us",
                               {{"s"},
                                {"ms", 1, 1e3},
                                {"us", 1, 1e6},
                                {"ns", 1, 1e9},
                                {"ps", 1, 1e12},
                                {"m", 60},
                                {"h", 3600},
                                {"d", 86400},
                                {"w", 604800}},
                               false};
    static const Kind speed{"speed", "1Gf", {{"f"}}, true};
    static const Kind size{"size", "4MB", {{"B"}, {"b", 1, 8}}, true};
    switch (quantity) {
        case Quantity::bandwidth: return bandwidth;
        case Quantity::duration: return duration;
        case Quantity::speed: return speed;
        case Quantity::size: return size;
    }
    return size;
}

/// Multiplier of a prefix; nothing where there is no such prefix.
std::optional<double> prefix_value(std::string_view prefix) {
    if (prefix.empty()) return 1.0;
    const auto power = std::string_view("kMGTPEZY").find(prefix[0]);
    if (prefix.size() == 1 && power != std::string_view::npos) return std::pow(1000.0, static_cast<double>(power) + 1);
    const auto binary = std::string_view("KMGTPEZY").find(prefix[0]);
    if (prefix.size() == 2 && prefix[1] == 'i' && binary != std::string_view::npos)
        return std::pow(1024.0, static_cast<double>(binary) + 1);
    return std::nullopt;
}

std::optional<Unit> find_unit(std::string_view text, const Kind& kind) {
    for (const Unit& unit : kind.units) {
        if (text == unit.name) return unit;
        if (kind.prefixes && text.size() > unit.name.size() && text.ends_with(unit.name)) {
            const auto prefix = prefix_value(text.substr(0, text.size() - unit.name.size()));
            if (prefix) return Unit{unit.name, *prefix * unit.times, unit.over};
        }
    }
    return std::nullopt;
}

/// Every unit with the prefixes that people use, in the order in which they are to be suggested.
std::vector<std::string> spellings(const Kind& kind) {
    std::vector<std::string> all;
    for (const Unit& unit : kind.units) all.push_back(unit.name);
    if (!kind.prefixes) return all;
    for (const char* prefix : {"k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"})
        for (const Unit& unit : kind.units) all.push_back(prefix + unit.name);
    return all;
}

/// Lower case, with the usual foreign spellings brought home: Gb/s, GFlops, GFLOP/s, sec.
std::string normalized(std::string_view unit, Quantity quantity) {
    std::string text;
    for (const char c : unit) text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const auto replace_tail = [&](std::string_view tail, std::string_view by) {
        if (!text.ends_with(tail)) return false;
        text.replace(text.size() - tail.size(), tail.size(), by);
        return true;
    };
    if (quantity == Quantity::bandwidth) {
        replace_tail("/sec", "ps") || replace_tail("/s", "ps");
        replace_tail("bitps", "bps") || replace_tail("bytesps", "bps") || replace_tail("byteps", "bps");
    }
    if (quantity == Quantity::speed)
        replace_tail("flop/s", "f") || replace_tail("flops", "f") || replace_tail("flop", "f");
    if (quantity == Quantity::duration)
        replace_tail("seconds", "s") || replace_tail("second", "s") || replace_tail("sec", "s");
    return text;
}

[[noreturn]] void fail(std::string_view text, const Kind& kind, const std::string& why) {
    throw UnitError("\"" + std::string(text) + "\": " + why + "; expected a " + kind.name + " such as " + kind.example);
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
    return text;
}

}  // namespace

std::string suggest_unit(std::string_view unit, Quantity quantity) {
    const Kind& kind = kind_of(quantity);
    const std::string wanted = normalized(unit, quantity);
    std::string found;
    for (const auto& spelling : spellings(kind)) {
        std::string lower = normalized(spelling, quantity);
        if (lower != wanted) continue;
        // Of "Gb/s" the writer already chose between bits and bytes.
        const bool chosen = unit.find('/') != std::string_view::npos;
        const char other = unit.find('B') != std::string_view::npos ? 'b' : 'B';
        if (chosen && quantity == Quantity::bandwidth && spelling[spelling.size() - 3] == other) continue;
        found += (found.empty() ? "" : " or ") + spelling;
        if (quantity == Quantity::bandwidth) found += spelling.ends_with("Bps") ? " (bytes)" : " (bits)";
    }
    return found.empty() ? "" : "did you mean " + found + "?";
}

double parse_quantity(std::string_view text, Quantity quantity) {
    const Kind& kind = kind_of(quantity);
    const std::string whole(trimmed(text));
    char* end = nullptr;
    const double number = std::strtod(whole.c_str(), &end);
    if (end == whole.c_str()) fail(text, kind, "no number");
    if (!std::isfinite(number)) fail(text, kind, "not a finite number");
    const std::string_view unit = trimmed(end);
    if (unit.empty()) {
        if (number == 0) return 0;
        fail(text, kind, "no unit");
    }
    if (const auto found = find_unit(unit, kind)) {
        const double value = number * found->times / found->over;
        if (!std::isfinite(value)) fail(text, kind, "not a finite number");
        return value;
    }
    const std::string hint = suggest_unit(unit, quantity);
    fail(text, kind, "unknown unit \"" + std::string(unit) + "\"" + (hint.empty() ? "" : ", " + hint));
}

double parse_physical(std::string_view text, Quantity quantity) {
    const double value = parse_quantity(text, quantity);
    const Kind& kind = kind_of(quantity);
    if (value < 0) fail(text, kind, "negative");
    const bool rate = quantity == Quantity::bandwidth || quantity == Quantity::speed;
    if (rate && value == 0) fail(text, kind, "must be above zero");
    return value;
}

}  // namespace rubato::sim
