// Tables of measurements, CSV: row after row, with errors that name file, line and column.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

/// Reads the named columns of a table, in whatever order they stand; further ones are ignored. Lines may end in CRLF.
class Table {
public:
    /// Throws InputError where the file cannot be read or a column is missing or stands there twice. `cut`: the last
    /// line may be cut off, as a run that is killed leaves it, and is skipped then.
    Table(const std::string& path, std::vector<std::string> columns, bool cut = false);

    /// Goes to the next row; false at the end. Throws InputError for a row with too few or too many cells.
    bool next();
    /// Of the row at hand, by index into the columns asked for.
    const std::string& text(std::size_t column) const { return cells_[places_[column]]; }
    /// Throws InputError where the cell is no finite number.
    double number(std::size_t column) const;
    /// The same, nothing where the cell is empty.
    std::optional<double> number_if_any(std::size_t column) const;
    /// Throws InputError where the cell is no integer.
    std::int64_t whole(std::size_t column) const;
    std::optional<std::int64_t> whole_if_any(std::size_t column) const;
    /// Throws InputError at the cell: "expected EXPECTATION, found ...".
    [[noreturn]] void refuse(std::size_t column, const std::string& expectation) const;
    std::int64_t line() const { return line_; }
    /// That a last line was cut off and skipped; empty where none was.
    const std::string& warning() const { return warning_; }

private:
    bool read_line();

    std::string path_;
    std::vector<std::string> columns_;
    bool cut_;
    std::ifstream file_;
    std::string text_, warning_;
    bool whole_line_ = false;  ///< text_ ended in a line break
    std::int64_t line_ = 0;
    std::vector<std::size_t> places_;
    std::size_t width_ = 0;
    std::vector<std::string> cells_;
};

}  // namespace rubato::cli
