#include "trace/log_reader.hpp"

#include "trace/event_text.hpp"

#include <charconv>
#include <stdexcept>
#include <utility>

namespace rubato::trace {
namespace {

template <class Number>
bool read_number(std::string_view word, Number& value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
}

std::string quoted(std::string_view text) {
    return '"' + std::string(text) + '"';
}

}  // namespace

LogReader::LogReader(std::istream& log, std::function<std::string(RoleId)> role_name)
    : log_(log), role_name_(std::move(role_name)) {}

ReplayResult LogReader::result() const {
    return {difference_.empty(), lines_, steps_, difference_, ended_ || !difference_.empty()};
}

bool LogReader::read_line() {
    if (!std::getline(log_, line_)) return false;
    has_newline_ = !log_.eof();
    parts_ = split_line(line_);
    has_line_ = true;
    ++lines_;
    return true;
}

bool LogReader::checksum_holds() {
    return chain_.next(parts_.kind, parts_.body) == parts_.checksum;
}

bool LogReader::broken_off(ChecksumChain before, std::string_view kind, std::string_view body) const {
    return !has_newline_ && sealed_line(before, kind, body).starts_with(line_);
}

bool LogReader::report(const std::string& what) {
    difference_ = place_ + (place_.empty() ? "" : ", ") + "line " + std::to_string(lines_) + ": " + what;
    return finish();
}

bool LogReader::finish() {
    done_ = true;
    return false;
}

bool LogReader::next_event() {
    if (done_ || (lines_ == 0 && !read_header_line())) return false;
    if (!has_line_ && !read_line()) return finish();
    has_line_ = false;
    // The state that the roles were made of.
    if (lines_ == 2 && parts_.kind == "S") {
        if (!checksum_holds()) return report("the state that the log begins with was altered");
        if (!read_line()) return finish();
        has_line_ = false;
    }
    return parts_.kind == "E" ? read_event_line() : read_end_line();
}

bool LogReader::read_header_line() {
    if (!read_line()) return finish();
    has_line_ = false;
    const bool holds = checksum_holds();
    if (!holds && !has_newline_ && std::string_view("H ").starts_with(line_.substr(0, 2))) return finish();
    if (parts_.kind != "H") return report("not an event log");
    if (!holds) return report("the header was altered");
    try {
        header_from_text(parts_.body);
    } catch (const std::invalid_argument& error) {
        return report(error.what());
    }
    return true;
}

bool LogReader::read_event_line() {
    if (!checksum_holds()) {
        if (!has_newline_) return finish();  // what was to follow nobody knows
        name_altered_event();
        return report("this line or the order of lines was altered: " + quoted(parts_.body));
    }
    try {
        parse_event();
    } catch (const std::invalid_argument& error) {
        return report(error.what());
    }
    ++steps_;
    return true;
}

void LogReader::parse_event() {
    std::string_view text = parts_.body;
    if (!read_number(cut_word(text), now_)) throw std::invalid_argument("a time in nanoseconds expected");
    if (!read_number(cut_word(text), role_) || role_ < 0) throw std::invalid_argument("a role expected");
    place_ = role_name_(role_) + ", event";
    event_ = event_from_text(std::string(text));
    place_ = role_name_(role_) + ", event " + std::string(event_kind(event_));
}

void LogReader::name_altered_event() {
    std::string_view text = parts_.body;
    Time now = 0;
    RoleId role = -1;
    const bool timed = read_number(cut_word(text), now);
    const std::string_view word = cut_word(text);
    if (timed && read_number(word, role) && role >= 0)
        place_ = role_name_(role) + ", event " + std::string(cut_word(text));
    else if (parts_.kind == "E")
        place_ = "role " + std::string(word) + ", event " + std::string(cut_word(text));
    else if (place_.empty())  // it may have been anything; otherwise the event before it is named
        place_ = "role ?, event ?";
}

bool LogReader::read_end_line() {
    const ChecksumChain before = chain_;
    const std::string count = std::to_string(lines_ - 1);
    if (!checksum_holds() || parts_.kind != "END" || parts_.body != count) {
        if (broken_off(before, "END", count)) return finish();
        if (parts_.kind != "END") name_altered_event();
        return report("this line or the order of lines was altered: " + quoted(line_));
    }
    if (read_line()) return report("a line after the end: " + quoted(line_));
    ended_ = true;
    return finish();
}

bool LogReader::compare(const std::vector<std::string>& replayed) {
    for (std::size_t i = 0;; ++i) {
        if (!has_line_ && !read_line()) return finish();
        const std::string expected = i < replayed.size() ? quoted(replayed[i].substr(2)) : "nothing more";
        const bool of_this_event = parts_.kind == "A" || parts_.kind == "R";
        if (i == replayed.size() && !of_this_event) return true;
        const ChecksumChain before = chain_;
        if (!checksum_holds()) {
            if (i < replayed.size() && broken_off(before, replayed[i].substr(0, 1), replayed[i].substr(2)))
                return finish();
            return report("this line or the order of lines was altered: recorded " + quoted(line_) + ", replayed " +
                          expected);
        }
        if (!of_this_event) return report("recorded nothing more, replayed " + expected);
        const std::string recorded = std::string(parts_.kind) + ' ' + std::string(parts_.body);
        if (i == replayed.size() || recorded != replayed[i])
            return report("recorded " + quoted(parts_.body) + ", replayed " + expected);
        has_line_ = false;
    }
}

}  // namespace rubato::trace
