#include "cli/calibrate/table.hpp"

#include "cli/error.hpp"
#include "cli/json_reader.hpp"
#include "cli/suggest.hpp"
#include "cli/sweep/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

namespace rubato::cli {
namespace {

void trim(std::string& text) {
    const auto space = [](char c) { return c == ' ' || c == '\t'; };
    while (!text.empty() && space(text.back())) text.pop_back();
    text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), space));
}

}  // namespace

Table::Table(const std::string& path, std::vector<std::string> columns, bool cut)
    : path_(path), columns_(std::move(columns)), cut_(cut) {
    namespace fs = std::filesystem;
    std::error_code error;
    if (!fs::exists(path, error)) throw InputError(path + ": there is no such file");
    if (!fs::is_regular_file(path, error)) throw InputError(path + ": is no file, expected a table (CSV)");
    file_.open(path, std::ios::binary);
    if (!file_) throw InputError(path + ": cannot be read");
    std::string header;
    for (const auto& column : columns_) header += (header.empty() ? "" : ",") + column;
    if (!read_line()) throw InputError(path + ": is empty, expected a table that begins with \"" + header + "\"");
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (text_.starts_with(byte_order_mark)) text_.erase(0, byte_order_mark.size());
    split_csv(text_, cells_);
    for (auto& cell : cells_) trim(cell);
    width_ = cells_.size();
    for (const auto& column : columns_) {
        const auto found = std::find(cells_.begin(), cells_.end(), column);
        if (found == cells_.end()) {
            const std::string near = is_utf8(text_) ? nearest(column, cells_) : "";
            throw InputError(path + ":1: column \"" + column + "\" is missing, expected a table that begins with \"" +
                             header + "\"" + (near.empty() ? "" : "; is \"" + near + "\" meant?"));
        }
        if (std::count(cells_.begin(), cells_.end(), column) > 1)
            throw InputError(path + ":1: column \"" + column +
                             "\" stands there twice, and which of them counts is not "
                             "known: expected each name once");
        places_.push_back(static_cast<std::size_t>(found - cells_.begin()));
    }
}

bool Table::read_line() {
    if (!std::getline(file_, text_)) return false;
    whole_line_ = !file_.eof();
    ++line_;
    if (!text_.empty() && text_.back() == '\r') text_.pop_back();
    return true;
}

bool Table::next() {
    do {
        if (!read_line()) return false;
    } while (text_.empty());
    const bool closed = split_csv(text_, cells_);
    const bool fits = closed && cells_.size() == width_;
    if (fits && (whole_line_ || !cut_)) {
        for (auto& cell : cells_) trim(cell);
        return true;
    }
    if (cut_ && !whole_line_) {
        warning_ = path_ + ":" + std::to_string(line_) + ": the last line is cut off and was skipped";
        return false;
    }
    throw InputError(path_ + ":" + std::to_string(line_) + ": expected " + std::to_string(width_) +
                     " cells as in the first line, found " +
                     (closed ? std::to_string(cells_.size()) : std::string("a quote that is not closed")));
}

void Table::refuse(std::size_t column, const std::string& expectation) const {
    const std::string& cell = text(column);
    const std::string shown = !is_utf8(cell) ? "bytes that are no UTF-8" : "\"" + head_of(cell, 60) + "\"";
    throw InputError(path_ + ":" + std::to_string(line_) + ": " + columns_[column] + ": expected " + expectation +
                     ", found " + (cell.empty() ? "nothing" : shown));
}

double Table::number(std::size_t column) const {
    const std::string& cell = text(column);
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) refuse(column, "a number");
    return value;
}

std::optional<double> Table::number_if_any(std::size_t column) const {
    if (text(column).empty()) return std::nullopt;
    return number(column);
}

std::int64_t Table::whole(std::size_t column) const {
    const std::string& cell = text(column);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size()) refuse(column, "an integer");
    return value;
}

std::optional<std::int64_t> Table::whole_if_any(std::size_t column) const {
    if (text(column).empty()) return std::nullopt;
    return whole(column);
}

}  // namespace rubato::cli
