#include "cli/sweep/results.hpp"

#include "cli/log.hpp"
#include "cli/sweep/csv.hpp"
#include "cli/sweep/table_text.hpp"
#include "trace/environment.hpp"
#include "trace/line_file.hpp"
#include "trace/recorder.hpp"
#include "trace/summary_cells.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace rubato::cli {
namespace {

std::string joined(const std::vector<std::string>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) line += (i ? "," : "") + csv_cell(cells[i]);
    return line;
}

bool is_identity(const std::string& text) {
    return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::vector<std::string> result_columns(const SweepFile& sweep) {
    std::vector<std::string> columns{"point", "phase", "label", "seed"};
    columns.insert(columns.end(), sweep.swept.begin(), sweep.swept.end());
    columns.insert(columns.end(), {"status", "status_detail"});
    for (const auto& column : trace::summary_columns()) columns.push_back(column.name);
    columns.emplace_back("version");
    return columns;
}

std::string result_row(const Setting& setting, Phase phase, std::int64_t seed, std::uint64_t identity,
                       std::string_view status, std::string_view detail, const std::string& figures) {
    std::string row = identity_text(identity);
    row += ',';
    row += name(phase);
    row += ',' + csv_cell(setting.label) + ',' + std::to_string(seed);
    for (const auto& cell : setting.cells) row += ',' + cell;
    row += ',';
    row += status;
    row += ',' + csv_cell(detail) + ',';
    row += figures.empty() ? std::string(trace::summary_columns().size() - 1, ',') : figures;
    return row + ',' + trace::program_version();
}

Results::Results(const std::string& directory, std::vector<std::string> columns)
    : path_(directory + "/results.csv"), columns_(std::move(columns)) {}

Results::~Results() {
    close();
}

void Results::close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    read_ = 0;
    line_ = 0;
}

void Results::fail(int error) const {
    throw trace::OutputError("cannot write " + path_ + ": " + std::strerror(error),
                             error == ENOSPC || error == EDQUOT || error == EFBIG);
}

bool Results::open_for_reading() {
    struct stat now {};
    // Rewritten under another name and renamed: what is open is no longer the table.
    if (descriptor_ >= 0 && ::fstat(descriptor_, &now) == 0 && now.st_nlink > 0) return true;
    close();
    descriptor_ = ::open(path_.c_str(), (writable_ ? O_RDWR | O_APPEND : O_RDONLY) | O_CLOEXEC);
    if (descriptor_ < 0) {
        if (errno == ENOENT && !writable_) return false;
        if (writable_) fail(errno);
        throw InputError(path_ + ": cannot be read: " + std::strerror(errno));
    }
    read_header();
    return true;
}

void Results::read_header() {
    const std::string text = read_from(descriptor_, 0);
    const auto end = text.find('\n');
    if (end == std::string::npos) {
        header_.clear();  // made, and killed before its first line was whole
        return;
    }
    const std::string_view line(text.data(), end);
    foreign_ = plain_header(line).size() != line.size();
    if (!split_csv(plain_header(line), header_) || header_.front() != "point")
        throw InputError(path_ + ":1: is no table of results: expected the column \"point\" first");
    read_ = static_cast<std::int64_t>(end) + 1;
    line_ = 1;
    ++generation_;
    version_ = column("version");
    places_.clear();
    if (header_ == columns_) return;
    for (const auto& name : columns_) {
        const auto found = std::find(header_.begin(), header_.end(), name);
        if (found == header_.end()) {
            places_.clear();
            return;  // readers alone may do without
        }
        places_.push_back(static_cast<std::size_t>(found - header_.begin()));
    }
}

std::size_t Results::column(std::string_view name) const {
    const auto found = std::find(header_.begin(), header_.end(), name);
    if (found == header_.end())
        throw InputError(path_ + ":1: has no column \"" + std::string(name) +
                         "\": expected a table that rubato sweep wrote");
    return static_cast<std::size_t>(found - header_.begin());
}

bool Results::open_for_writing(Claims& claims, const SweptCells& swept, bool changed) {
    const Claims::Writing lock(claims);
    writable_ = true;
    const int made = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (made < 0) fail(errno);
    ::close(made);
    open_for_reading();
    if (header_.empty()) {
        const int error =
            ::ftruncate(descriptor_, 0) != 0 ? errno : trace::write_all(descriptor_, joined(columns_) + "\n");
        if (error != 0) fail(error);
        read_header();
        return false;
    }
    if (foreign_) {
        trace::write_file_by_rename(path_, plain_table(read_from(descriptor_, 0)));
        open_for_reading();
    }
    end_last_line();
    const bool lacks = std::any_of(columns_.begin(), columns_.end(), [&](const auto& name) {
        return std::find(header_.begin(), header_.end(), name) == header_.end();
    });
    // Columns may be there already from a sweep that had other points.
    if (lacks || changed) widen(read_from(descriptor_, 0), swept);
    open_for_reading();
    return lacks;
}

/// Whoever wrote here last was killed in the middle of a line, or an editor has left its end out.
void Results::end_last_line() {
    const std::string text = read_from(descriptor_, read_);
    if (text.empty() || text.back() == '\n') return;
    if (const int error = trace::write_all(descriptor_, "\n"); error != 0) fail(error);
}

/// Columns of this sweep first, what only older rows have behind them; `version` stays last.
void Results::widen(const std::string& text, const SweptCells& swept) {
    const auto place_of = [](const std::vector<std::string>& names, const std::string& name) {
        return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    };
    std::vector<std::string> wide(columns_.begin(), columns_.end() - 1);
    for (const auto& name : header_) {
        if (std::find(columns_.begin(), columns_.end(), name) == columns_.end()) wide.push_back(name);
    }
    wide.emplace_back("version");
    const std::size_t status = place_of(wide, "status");
    std::vector<std::size_t> from;
    for (const auto& name : wide) from.push_back(place_of(header_, name));
    std::string out = joined(wide) + "\n";
    std::vector<std::string> row(wide.size()), cell;
    each_line(std::string_view(text).substr(static_cast<std::size_t>(read_)), [&](std::string_view line) {
        if (!is_whole(line)) return;
        for (std::size_t i = 0; i < wide.size(); ++i) row[i] = from[i] < cells_.size() ? cells_[from[i]] : "";
        // The swept keys stand behind point, phase, label and seed. Failed points are tried again, and get a new row.
        const bool lacks = std::any_of(row.begin() + 4, row.begin() + static_cast<std::ptrdiff_t>(status),
                                       [](const auto& one) { return one.empty(); });
        const auto* own = lacks && row[status] != "failed" ? swept(std::stoull(row.front(), nullptr, 16)) : nullptr;
        for (std::size_t i = 0; own && i < own->size(); ++i)
            if (row[4 + i].empty() && split_csv((*own)[i], cell)) row[4 + i] = cell.front();
        out += joined(row) + "\n";
    });
    if (out != text) trace::write_file_by_rename(path_, out);
}

bool Results::has_grown() const {
    struct stat now {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &now) != 0) return true;
    return now.st_nlink == 0 || now.st_size != read_;
}

/// Where a row was cut, the version at its end is missing or cut itself; then nothing else is.
bool Results::is_whole(std::string_view line) {
    return split_csv(line, cells_) && cells_.size() == header_.size() && is_identity(cells_.front()) &&
           !cells_[version_].empty();
}

void Results::take_line(std::string_view line, const Take& take) {
    ++line_;
    if (!is_whole(line)) {
        broken_ = true;
        if (!line.empty()) warn(path_ + ":" + std::to_string(line_) + ": a broken row is skipped");
        return;
    }
    take({std::stoull(cells_.front(), nullptr, 16), cells_});
}

void Results::read_new(const Take& take) {
    if (!open_for_reading() || header_.empty()) return;
    if (!has_grown()) return;
    const std::string text = read_from(descriptor_, read_);
    const std::size_t whole = each_line(text, [&](std::string_view line) { take_line(line, take); });
    read_ += static_cast<std::int64_t>(whole);
    // A last line without its end may be one that an editor has left so: it counts if it is whole, and only then.
    const std::string_view rest = without_return(std::string_view(text).substr(whole));
    if (rest.empty() || writable_) return;
    if (is_whole(rest))
        take({std::stoull(cells_.front(), nullptr, 16), cells_});
    else
        warn(path_ + ":" + std::to_string(line_ + 1) + ": the last row is cut off and is skipped");
}

std::string Results::in_order_of_the_file(const std::string& lines) const {
    if (places_.empty()) return lines;
    std::string out;
    std::vector<std::string> cells, row;
    each_line(lines, [&](std::string_view line) {
        split_csv(line, cells);
        row.assign(header_.size(), "");
        for (std::size_t i = 0; i < cells.size(); ++i) row[places_[i]] = cells[i];
        out += joined(row) + "\n";
    });
    return out;
}

void Results::append(Claims& claims, const std::string& lines, const Take& take) {
    const Claims::Writing lock(claims);
    read_new(take);
    struct stat now {};
    if (::fstat(descriptor_, &now) != 0) fail(errno);
    const bool cut = now.st_size > read_;
    const std::string text = (cut ? "\n" : "") + in_order_of_the_file(lines);
    if (const int error = trace::write_all(descriptor_, text); error != 0) {
        static_cast<void>(::ftruncate(descriptor_, now.st_size));
        fail(error);
    }
    read_new(take);
}

void Results::drop_superseded(Claims& claims) {
    const Claims::Writing lock(claims);
    open_for_reading();
    const std::string text = read_from(descriptor_, 0);
    std::unordered_map<std::string, std::size_t> last;
    std::size_t count = 0;
    each_line(text, [&](std::string_view line) {
        const bool row = split_csv(line, cells_) && cells_.size() == header_.size() && !cells_[version_].empty();
        if (row) last[cells_.front()] = count;
        ++count;
    });
    std::string out;
    std::size_t at = 0;
    each_line(text, [&](std::string_view line) {
        const bool row = split_csv(line, cells_) && cells_.size() == header_.size() && !cells_[version_].empty();
        if (row && last.at(cells_.front()) == at) out.append(line).append("\n");
        ++at;
    });
    if (out.size() != text.size()) trace::write_file_by_rename(path_, out);
}

}  // namespace rubato::cli
