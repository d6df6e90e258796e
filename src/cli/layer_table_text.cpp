#include "cli/layer_table_text.hpp"

#include "cli/json_reader.hpp"
#include "cli/suggest.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace rubato::cli {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";

std::string_view trimmed(std::string_view text, std::string_view dropped = blanks) {
    const auto first = text.find_first_not_of(dropped);
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(dropped) - first + 1);
}

/// Commas at the end of a line, with whatever blanks between, are dropped.
std::string_view without_tail(std::string_view text) {
    const auto last = text.find_last_not_of(" \t\r\v\f,");
    return last == text.npos ? std::string_view() : trimmed(text.substr(0, last + 1));
}

std::vector<TextLine> lines_of(std::string_view text) {
    std::vector<TextLine> lines;
    int number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const auto end = std::min(text.find('\n', begin), text.size());
        ++number;
        if (const auto line = without_tail(text.substr(begin, end - begin)); !line.empty())
            lines.push_back({number, line});
        begin = end + 1;
    }
    return lines;
}

}  // namespace

void TextTable::refuse(int line, const std::string& message) const {
    throw InputError({std::make_shared<const std::string>(file), line, 0}, "", message);
}

std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    for (auto begin = text.find_first_not_of(blanks); begin != text.npos;) {
        const auto end = std::min(text.find_first_of(blanks, begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        begin = text.find_first_not_of(blanks, end);
    }
    return words;
}

std::vector<std::string_view> cells_of(std::string_view text) {
    std::vector<std::string_view> cells;
    for (std::size_t begin = 0; begin <= text.size();) {
        const auto end = std::min(text.find(',', begin), text.size());
        cells.push_back(trimmed(text.substr(begin, end - begin)));
        begin = end + 1;
    }
    return cells;
}

std::optional<double> number_of(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
    return value;
}

bool is_whole(double value) {
    return std::trunc(value) == value;
}

std::string shown(std::string_view text) {
    return describe(Node::of(std::string(text)));
}

LayerTable parse_layer_text(const std::string& text, const std::string& file) {
    // Spreadsheets begin a file with a byte order mark.
    const std::string_view mark = "\xEF\xBB\xBF";
    const std::string_view body = text.starts_with(mark) ? std::string_view(text).substr(mark.size()) : text;
    const TextTable input{file, lines_of(body)};
    if (!is_utf8(text)) input.refuse(0, "holds a byte that is not UTF-8");
    if (input.lines.empty()) input.refuse(0, "expected a layer table, found an empty file");
    const TextLine& first = input.lines.front();
    const std::string head(words_of(first.text)[0]);
    const auto& names = astra_parallelisms();
    LayerTable table;
    if (first.text.find(',') != first.text.npos) {
        table = parse_scale(input);
    } else if (std::find(names.begin(), names.end(), head) != names.end()) {
        table = parse_astra(input);
    } else {
        const std::string near = nearest(head, names);
        input.refuse(first.number,
                     "expected a layer table: JSON, a workload of ASTRA-sim, which begins with its parallelism such as "
                     "DATA, or a topology of SCALE-Sim, which begins with its header; found " +
                         shown(first.text) + (near.empty() ? "" : "; did you mean " + near + "?"));
    }
    table.name = std::filesystem::path(file).filename().string();
    return table;
}

}  // namespace rubato::cli
