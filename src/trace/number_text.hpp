// Numbers as text, without locale: integers in full, doubles in the shortest form that reads back exactly.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace rubato::trace {

/// No number takes more characters than this.
inline constexpr std::size_t number_chars_max = 32;

/// Write at `at`, where number_chars_max characters are free, and return the end.
inline char* put(char* at, std::int64_t value) {
    return std::to_chars(at, at + number_chars_max, value).ptr;
}

inline char* put(char* at, std::string_view text) {
    return std::copy(text.begin(), text.end(), at);
}

inline char* put(char* at, double value) {
    if (std::isnan(value)) return put(at, std::string_view("nan"));  // to_chars would show the sign and payload
    // Timing-only runs write only whole numbers here; the shortest-form search is several times dearer.
    if (value == 0 && !std::signbit(value)) return put(at, std::string_view("0"));
    if (value == 1) return put(at, std::string_view("1"));
    return std::to_chars(at, at + number_chars_max, value).ptr;
}

template <class Number>
void append_number(std::string& out, Number value) {
    char text[number_chars_max];
    out.append(text, put(text, value));
}

}  // namespace rubato::trace
