// The text of a table, line by line, whoever saved it last.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rubato::cli {

/// The rest of the file from `at` on.
std::string read_from(int descriptor, std::int64_t at);

/// Spreadsheets end lines in a carriage return too. Cells hold none: csv_cell sees to it.
inline std::string_view without_return(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

/// The first line of a table without its end, and without the byte order mark that spreadsheets put before it.
std::string_view plain_header(std::string_view line);

/// The table as it is written here: every line ends in a newline alone, and nothing is before the header.
std::string plain_table(std::string_view text);

/// Calls with each whole line, without its end. Returns the bytes that they took.
template <class F>
std::size_t each_line(std::string_view text, F&& call) {
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', begin)) {
        call(without_return(text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return begin;
}

}  // namespace rubato::cli
