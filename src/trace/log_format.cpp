#include "trace/log_format.hpp"

#include "trace/number_text.hpp"

#include <charconv>
#include <istream>
#include <stdexcept>

namespace rubato::trace {
namespace {

void take(std::string_view& text, std::string_view expected) {
    if (!text.starts_with(expected))
        throw std::invalid_argument("\"" + std::string(expected) + "\" expected at \"" + std::string(text) + "\"");
    text.remove_prefix(expected.size());
}

template <class Number>
void take_number(std::string_view& text, Number& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) throw std::invalid_argument("a number expected at \"" + std::string(text) + "\"");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
}

}  // namespace

std::string to_text(const LogHeader& header) {
    std::string text;
    append_number(text, std::int64_t{header.version});
    append_number(text += " samples=", header.samples);
    append_number(text += " parameters=", header.parameters);
    append_number(text += " lambda=", header.lambda);
    for (std::size_t i = 0; i < header.layers.size(); ++i)
        append_number(text += i == 0 ? " layers=" : ",", header.layers[i]);
    text += " scenario=";
    for (const char c : header.scenario) text += c == '\n' || c == '\r' ? ' ' : c;
    return text;
}

LogHeader header_from_text(std::string_view text) {
    LogHeader header;
    take_number(text, header.version);
    if (header.version != event_log_version)
        throw std::invalid_argument("version " + std::to_string(event_log_version) + " expected, not " +
                                    std::to_string(header.version));
    take(text, " samples=");
    take_number(text, header.samples);
    take(text, " parameters=");
    take_number(text, header.parameters);
    take(text, " lambda=");
    take_number(text, header.lambda);
    for (std::string_view before = " layers="; text.starts_with(before); before = ",") {
        take(text, before);
        take_number(text, header.layers.emplace_back());
    }
    take(text, " scenario=");
    header.scenario = text;
    return header;
}

LogHeader read_header(std::istream& log) {
    std::string text;
    std::getline(log, text);
    const LogLine line = split_line(text);
    if (line.kind != "H") throw NotALog("events.log, line 1: not an event log");
    if (line.checksum != ChecksumChain().next(line.kind, line.body))
        throw std::invalid_argument("events.log, line 1: the header was altered or is incomplete");
    return header_from_text(line.body);
}

std::string read_state(std::istream& log) {
    std::string first, second;
    if (!std::getline(log, first) || !std::getline(log, second)) return "";
    const LogLine header = split_line(first), line = split_line(second);
    if (line.kind != "S") return "";
    ChecksumChain chain;
    chain.next(header.kind, header.body);
    if (line.checksum != chain.next(line.kind, line.body))
        throw std::invalid_argument("events.log, line 2: the state that the log begins with was altered");
    return std::string(line.body);
}

std::string ChecksumChain::next(std::string_view kind, std::string_view body) {
    constexpr std::uint64_t prime = 0x100000001b3;
    for (const std::string_view part : {kind, std::string_view(" "), body, std::string_view("\n")})
        for (const char c : part) state_ = (state_ ^ static_cast<unsigned char>(c)) * prime;
    constexpr char digits[] = "0123456789abcdef";
    std::string out(16, '0');
    for (int i = 0; i < 16; ++i) out[static_cast<std::size_t>(i)] = digits[state_ >> (60 - 4 * i) & 15];
    return out;
}

std::string sealed_line(ChecksumChain& chain, std::string_view kind, std::string_view body) {
    std::string line(kind);
    line += ' ';
    line += chain.next(kind, body);
    line += ' ';
    return line += body;
}

LogLine split_line(std::string_view line) {
    LogLine out;
    out.kind = cut_word(line);
    out.checksum = cut_word(line);
    out.body = line;
    return out;
}

std::string_view cut_word(std::string_view& text) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size() < text.size() ? word.size() + 1 : word.size());
    return word;
}

}  // namespace rubato::trace
