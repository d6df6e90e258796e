// The error of data, models and names that the scenario asks for and that are missing or broken.
#pragma once

#include <stdexcept>

namespace rubato::learn {

/// One line: the file (or key), what was expected and what was found.
struct InputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace rubato::learn
