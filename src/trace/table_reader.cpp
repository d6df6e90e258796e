#include "trace/table_reader.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace rubato::trace {

TableReader::TableReader(const std::string& path, std::vector<std::string_view> wanted)
    : path_(path), file_(path, std::ios::binary), wanted_(std::move(wanted)) {
    if (!file_ || !std::getline(file_, line_text_))
        throw std::invalid_argument(path_ + ": cannot be read, or is empty");
    split(line_text_);
    columns_ = used_;
    for (const std::string_view name : wanted_) {
        const auto end = cells_.begin() + static_cast<std::ptrdiff_t>(used_);
        const auto found = std::find(cells_.begin(), end, name);
        if (found == end) fail("expected a column " + std::string(name));
        places_.push_back(static_cast<std::size_t>(found - cells_.begin()));
    }
}

// The tables are written in whole lines, each of which has its newline: only a kill leaves one without.
bool TableReader::next() {
    if (!std::getline(file_, line_text_)) return false;
    ++line_;
    const bool broken = file_.eof();
    split(line_text_);
    if (broken) {
        warning_ = path_ + ":" + std::to_string(line_) + ": the last line is cut off and was left out";
        return false;
    }
    if (used_ != columns_) fail("expected " + std::to_string(columns_) + " cells, found " + std::to_string(used_));
    return true;
}

void TableReader::split(std::string_view line) {
    used_ = 0;
    const auto next_cell = [&]() -> std::string& {
        if (cells_.size() == used_) cells_.emplace_back();
        cells_[used_].clear();
        return cells_[used_++];
    };
    std::string* cell = &next_cell();
    bool in_quotes = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (c == '"' && in_quotes && i + 1 < line.size() && line[i + 1] == '"')
            *cell += line[++i];
        else if (c == '"')
            in_quotes = !in_quotes;
        else if (c == ',' && !in_quotes)
            cell = &next_cell();
        else
            *cell += c;
    }
}

const std::string& TableReader::text(std::size_t index) const {
    return cells_[places_[index]];
}

std::optional<std::int64_t> TableReader::whole(std::size_t index) const {
    const std::string& cell = text(index);
    if (cell.empty()) return std::nullopt;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size()) fail(index, "a whole number");
    return value;
}

std::optional<double> TableReader::number(std::size_t index) const {
    const std::string& cell = text(index);
    if (cell.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size()) fail(index, "a number");
    return value;
}

std::int64_t TableReader::whole_at(std::size_t index) const {
    const auto value = whole(index);
    if (!value) fail(index, "a whole number");
    return *value;
}

double TableReader::number_at(std::size_t index) const {
    const auto value = number(index);
    if (!value) fail(index, "a number");
    return *value;
}

void TableReader::fail(const std::string& what) const {
    throw std::invalid_argument(path_ + ":" + std::to_string(line_) + ": " + what);
}

void TableReader::fail(std::size_t index, const char* expected) const {
    fail(std::string(wanted_[index]) + ": expected " + expected + ", found \"" + text(index) + "\"");
}

}  // namespace rubato::trace
