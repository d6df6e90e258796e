// From what SimGrid prints about a platform file to one line for the user.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rubato::sim {

/// A platform file and its text, for messages that point into it.
struct PlatformText {
    std::string path;
    std::string text;

    /// Number (from 1) of the line of the given occurrence of the word in quotes; 0: not found.
    int line_of(std::string_view word, int occurrence = 1) const;
    /// "path:line: " or "path: ".
    std::string at(int line) const;
};

/// One line from the log of a load that failed: place, what was found, what was expected, suggestion.
std::string explain_failure(const PlatformText& file, std::string_view log);

/// Warnings of a load that succeeded, one line each, with the place.
std::vector<std::string> explain_warnings(const PlatformText& file, std::string_view log);

}  // namespace rubato::sim
