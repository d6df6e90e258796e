// Arithmetic of hand derivations: numbers, + - * / and parentheses.
#pragma once

#include <string>

namespace rubato::tests {

/// Value of the whole text. Throws std::runtime_error with the text where it cannot be read.
double evaluate(const std::string& text);

}  // namespace rubato::tests
