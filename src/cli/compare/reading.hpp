// An explanation in words.
#pragma once

#include "cli/compare/explain.hpp"

namespace rubato::cli {

/// One sentence: how large the gap is, what causes most of it, and by how much that differs.
std::string reading_of(const Explanation& explanation, const Side& predicted, const Side& measured);

}  // namespace rubato::cli
