#include "sim/simgrid/simgrid_messages.hpp"

#include "sim/platform/units.hpp"

#include <algorithm>
#include <cstdlib>

namespace rubato::sim {

namespace {

constexpr const char* expected_head =
    "expected a SimGrid platform: <?xml version=\"1.0\"?>, then <!DOCTYPE platform SYSTEM "
    "\"https://simgrid.org/simgrid.dtd\">, then <platform version=\"4.1\">";

std::vector<std::string> lines_of(std::string_view log) {
    std::vector<std::string> lines;
    while (!log.empty()) {
        const auto end = std::min(log.find('\n'), log.size());
        if (end > 0) lines.emplace_back(log.substr(0, end));
        log.remove_prefix(std::min(end + 1, log.size()));
    }
    return lines;
}

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// What stands between the first `open` and the next `close`; empty where there is none.
std::string between(std::string_view text, std::string_view open, std::string_view close) {
    const auto begin = text.find(open);
    if (begin == std::string_view::npos) return "";
    text.remove_prefix(begin + open.size());
    const auto end = text.find(close);
    return end == std::string_view::npos ? "" : std::string(text.substr(0, end));
}

std::string explain_prolog(const PlatformText& file, const std::string& message) {
    if (file.text.starts_with("\xEF\xBB\xBF"))
        return std::string("begins with a byte order mark, which SimGrid cannot read; save it as UTF-8 without one");
    if (file.text.find_first_not_of(" \t\r\n") == std::string::npos)
        return std::string("the file is empty; ") + expected_head;
    if (has(message, "`<'")) return std::string("the DOCTYPE line is missing; ") + expected_head;
    return std::string("not an XML file; ") + expected_head;
}

std::string with_unit_hint(const std::string& message) {
    const std::string unit = message.substr(message.rfind(' ') + 1);
    for (const Quantity quantity : {Quantity::bandwidth, Quantity::duration, Quantity::speed})
        if (const std::string hint = suggest_unit(unit, quantity); !hint.empty())
            return "unknown unit \"" + unit + "\"; " + hint;
    return "unknown unit \"" + unit + "\"; expected such as 1Gbps (bits), 125MBps (bytes), 50us, 1Gf";
}

/// A parse error of SimGrid, without its place.
std::string explain_parse(const PlatformText& file, std::string message, std::string_view next_line) {
    if (has(message, "Invalid XML")) message.erase(0, std::min(message.find("): ") + 3, message.size()));
    if (has(message, "TOO OLD"))
        return "version " + between(message, "(v:", ")") +
               " of the platform format is too old; expected 4.1; simgrid_update_xml converts the file";
    if (has(message, "FUTURE"))
        return "version " + between(message, "(v:", ")") +
               " of the platform format is from the future; expected 4.1, to which simgrid_update_xml brings older "
               "files";
    if (has(message, "Bad attribute"))
        return message + " Attributes of older formats are converted by simgrid_update_xml";
    if (has(message, "unknown unit")) return with_unit_hint(message);
    if (has(message, "in prolog")) return explain_prolog(file, message);
    if (has(message, "is not allowed here"))
        return message + " A zone holds either hosts, links and routes, or other zones, and a cluster is a zone";
    if (has(message, "EOF in")) return "the file ends in the middle: " + message;
    if (has(message, "does name a node")) {
        const std::string known = next_line.size() < 200 ? std::string(next_line) : "";
        return "route to or from \"" + between(message, "='", "'") + "\", which is no host of the zone" +
               (known.empty() ? "" : "; there are " + known);
    }
    return message;
}

}  // namespace

int PlatformText::line_of(std::string_view word, int occurrence) const {
    std::size_t found = std::string::npos;
    std::size_t from = 0;
    for (const char quote : {'"', '\''}) {
        const std::string quoted = quote + std::string(word) + quote;
        from = 0;
        for (int i = 0; i < occurrence; ++i) {
            found = text.find(quoted, from);
            if (found == std::string::npos) break;
            from = found + 1;
        }
        if (found != std::string::npos) break;
    }
    if (found == std::string::npos) return 0;
    return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(found), '\n'));
}

std::string PlatformText::at(int line) const {
    return line > 0 ? path + ":" + std::to_string(line) + ": " : path + ": ";
}

std::string explain_failure(const PlatformText& file, std::string_view log) {
    const auto lines = lines_of(log);
    const std::string mark = "Parse error at " + file.path + ":";
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const std::string& line = lines[i];
        if (line.starts_with(mark)) {
            const int number = std::atoi(line.c_str() + mark.size());
            const auto colon = line.find(": ", mark.size());
            const std::string message = colon == std::string::npos ? line : line.substr(colon + 2);
            return file.at(number) + explain_parse(file, message, i + 1 < lines.size() ? lines[i + 1] : "");
        }
        if (line.starts_with("Link not found: ")) {
            const std::string link = line.substr(line.find(": ") + 2);
            return file.at(file.line_of(link)) + "link \"" + link + "\" is used by a route but not defined";
        }
        if (has(line, "Refusing to create a second host named")) {
            const std::string host = between(line, "'", "'");
            return file.at(file.line_of(host, 2)) + "a second host named \"" + host + "\"; names must be unique";
        }
        if (!line.starts_with("Deprecated unit-less") && !line.starts_with("You're using a v"))
            return file.at(0) + line;
    }
    return file.at(0) + "SimGrid cannot load the platform and does not say why";
}

std::vector<std::string> explain_warnings(const PlatformText& file, std::string_view log) {
    std::vector<std::string> warnings;
    for (const std::string& line : lines_of(log)) {
        // Version 4 is read as 4.1; the advice that follows is part of that message.
        if (line.starts_with("You're using a v4") || line.starts_with("Use simgrid_update_xml")) continue;
        int number = 0;
        std::string text = line;
        if (line.starts_with("Deprecated unit-less")) {
            const std::string value = between(line, "'", "'");
            const std::string what = between(line, "' for ", ". Append");
            const bool bandwidth = has(what, "bandwidth") || has(what, "bw");
            const char* unit = bandwidth ? "Bps (bytes)" : has(what, "speed") ? "f (flop/s)" : "s (seconds)";
            number = file.line_of(value);
            text = "value " + value + " for " + what + " has no unit; " + unit + " is assumed";
        }
        warnings.push_back(file.at(number) + text);
    }
    return warnings;
}

}  // namespace rubato::sim
