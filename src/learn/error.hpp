// The error of data, models and names that the scenario asks for and that are missing or broken.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace rubato::learn {

/// One line: the file (or key), what was expected and what was found.
struct InputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// "[1, 2, 3]", for messages.
inline std::string list(const std::vector<int>& values) {
    std::string text;
    for (int value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
    return "[" + text + "]";
}

}  // namespace rubato::learn
