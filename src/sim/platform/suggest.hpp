// "did you mean": the nearest of some words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rubato::sim {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other (optimal string
/// alignment); upper and lower case count as half different, `-` and `_` too.
double edit_distance(std::string_view a, std::string_view b);

/// The nearest candidate, or empty when none is near (a third of the letters, at least one).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "a, b or c".
std::string one_of(const std::vector<std::string>& words, std::string_view last = "or");

}  // namespace rubato::sim
