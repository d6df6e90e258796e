// The two formats of layer tables that are lines of text (docs/models.md), and what their readers share.
#pragma once

#include "cli/layer_table.hpp"

#include <optional>

namespace rubato::cli {

/// A line without blanks at its ends and commas at the last one.
struct TextLine {
    int number = 0;  ///< from 1
    std::string_view text;
};

struct TextTable {
    std::string file;
    std::vector<TextLine> lines;  ///< those that are not blank, at least one

    /// Throws InputError, "FILE:LINE: MESSAGE"; line 0: the file as a whole.
    [[noreturn]] void refuse(int line, const std::string& message) const;
};

/// As many as a scenario may have.
inline constexpr std::size_t table_layers_max = 2000;
/// Bytes of a layer's gradient.
inline constexpr double table_bytes_max = 1e15;

/// Parts between blanks.
std::vector<std::string_view> words_of(std::string_view text);
/// Parts between commas, without blanks at their ends.
std::vector<std::string_view> cells_of(std::string_view text);
/// Of all of the text, finite.
std::optional<double> number_of(std::string_view text);
bool is_whole(double value);
/// As messages show it.
std::string shown(std::string_view text);

/// Kinds of parallelism, with one of which a workload of ASTRA-sim begins.
const std::vector<std::string>& astra_parallelisms();
LayerTable parse_astra(const TextTable& input);
LayerTable parse_scale(const TextTable& input);

/// Of a text that is not JSON: parse_layer_table() has the formats.
LayerTable parse_layer_text(const std::string& text, const std::string& file);

}  // namespace rubato::cli
