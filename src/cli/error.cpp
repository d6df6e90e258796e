#include "cli/error.hpp"

#include <algorithm>

namespace rubato::cli {
namespace {

bool within_character(const std::string& text, std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

/// Control characters of a file's text must not break the one line.
std::string one_line(std::string text) {
    constexpr std::size_t most = 1500;  // the beginning says where, the end what
    if (text.size() > most) text = head_of(text, 1000) + " ... " + tail_of(text, 500);
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    }
    return text;
}

std::string located(const Where& where, const std::string& path, const std::string& message) {
    std::string text = to_text(where);
    if (!text.empty()) text += ": ";
    if (!path.empty()) text += path + ": ";
    return text + message;
}

}  // namespace

std::string head_of(const std::string& text, std::size_t most) {
    while (most > 0 && within_character(text, most)) --most;
    return text.substr(0, most);
}

std::string tail_of(const std::string& text, std::size_t most) {
    std::size_t begin = text.size() - std::min(most, text.size());
    while (within_character(text, begin)) ++begin;
    return text.substr(begin);
}

std::string to_text(const Where& where) {
    if (!where.file) return {};
    return where.line > 0 ? *where.file + ":" + std::to_string(where.line) : *where.file;
}

std::string set_label(const std::string& assignment) {
    constexpr std::size_t most = 150;
    return "--set " + (assignment.size() > most ? head_of(assignment, most) + " ..." : assignment);
}

InputError::InputError(const std::string& message) : std::runtime_error(one_line(message)) {}

InputError::InputError(const Where& where, const std::string& path, const std::string& message)
    : InputError(located(where, path, message)) {
    about_default_ = !where.file && !path.empty();
}

}  // namespace rubato::cli
