// Cells and lines of the tables of a sweep (CSV as RFC 4180 has it).
#pragma once

#include "cli/node.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace rubato::cli {

/// The text as a cell: in quotes where it holds a comma, a quote or a line break.
std::string csv_cell(std::string_view text);

/// A value of the scenario as a cell: texts bare, objects and arrays as compact JSON without comments; empty for null
/// pointers (the scenario has no such key).
std::string csv_cell(const Node* value);

/// The same without quotes: what the cell says.
std::string cell_text(const Node* value);

/// The number that a cell says; NaN where it says none.
double cell_number(const std::string& text);

/// Splits one line into its cells, quotes removed. False where a quote is not closed. `cells` is reused.
bool split_csv(std::string_view line, std::vector<std::string>& cells);

}  // namespace rubato::cli
