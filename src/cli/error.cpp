#include "cli/error.hpp"

namespace rubato::cli {
namespace {

/// Control characters of a file's text must not break the one line.
std::string one_line(std::string text) {
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

std::string to_text(const Where& where) {
    if (!where.file) return {};
    return where.line > 0 ? *where.file + ":" + std::to_string(where.line) : *where.file;
}

InputError::InputError(const std::string& message) : std::runtime_error(one_line(message)) {}

InputError::InputError(const Where& where, const std::string& path, const std::string& message)
    : InputError(located(where, path, message)) {
    about_default_ = !where.file && !path.empty();
}

}  // namespace rubato::cli
