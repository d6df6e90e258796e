// Reads the CSV tables of a run directory, row by row.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::trace {

/// A table whose columns may stand in any order, beside others that nobody asks for. Cells that are asked for by an
/// index are those of the wanted columns in their order.
class TableReader {
public:
    /// Throws std::invalid_argument where the file cannot be read or lacks a wanted column.
    TableReader(const std::string& path, std::vector<std::string_view> wanted);

    /// Whether there is one more row, which the cells are of then. A last line that a kill broke is no row, but a
    /// warning. Throws std::invalid_argument, with file and line, where another line has more or fewer cells.
    bool next();
    /// What the cell says; nothing where it is empty. Throws std::invalid_argument where it is no such number.
    std::optional<std::int64_t> whole(std::size_t index) const;
    std::optional<double> number(std::size_t index) const;
    const std::string& text(std::size_t index) const;
    /// The same, where the cell must not be empty.
    std::int64_t whole_at(std::size_t index) const;
    double number_at(std::size_t index) const;

    /// That a broken last line was left out; empty where none was.
    const std::string& warning() const { return warning_; }

private:
    [[noreturn]] void fail(const std::string& what) const;
    [[noreturn]] void fail(std::size_t index, const char* expected) const;
    void split(std::string_view line);

    std::string path_, line_text_, warning_;
    std::ifstream file_;
    std::int64_t line_ = 1;
    std::vector<std::string_view> wanted_;
    std::vector<std::size_t> places_;  ///< of the wanted columns
    std::size_t columns_ = 0;
    std::vector<std::string> cells_;
    std::size_t used_ = 0;  ///< cells of this line
};

}  // namespace rubato::trace
