// What fuzz targets hold an input to: accepted, or refused in one line. Anything else ends the process.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace rubato::fuzz {

[[noreturn]] inline void complain(const char* what, std::string_view text) {
    std::fprintf(stderr, "%s%.*s\n", what, static_cast<int>(text.size()), text.data());
    std::abort();
}

/// Ends the process, for libFuzzer or the replay to see, unless the text is one line of a size that people read.
inline void demand_one_line(std::string_view text) {
    if (text.empty() || text.size() >= 4000 || text.find('\n') != text.npos) complain("not one line: ", text);
}

inline void demand(bool holds, const char* what) {
    if (!holds) complain("does not hold: ", what);
}

}  // namespace rubato::fuzz
