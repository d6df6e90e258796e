#include "sim/schedule/delays.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace rubato::sim {
namespace {

/// Cells of a line; commas in quotes do not part them.
void split(std::string_view line, std::vector<std::string_view>& cells) {
    cells.clear();
    std::size_t begin = 0;
    bool quoted = false;
    for (std::size_t at = 0; at <= line.size(); ++at) {
        if (at < line.size() && line[at] == '"') quoted = !quoted;
        if (at < line.size() && (line[at] != ',' || quoted)) continue;
        std::string_view cell = line.substr(begin, at - begin);
        while (!cell.empty() && (cell.front() == ' ' || cell.front() == '"')) cell.remove_prefix(1);
        while (!cell.empty() && (cell.back() == ' ' || cell.back() == '"')) cell.remove_suffix(1);
        cells.push_back(cell);
        begin = at + 1;
    }
}

constexpr std::size_t nowhere = ~std::size_t{0};

class Reader {
public:
    Reader(const std::string& path, int lambda) : lambda_(lambda) { trace_.file = path; }

    DelayTrace read() {
        std::error_code error;
        if (!std::filesystem::is_regular_file(trace_.file, error))
            throw ScheduleError(trace_.file + ": there is no such file, expected a trace of delays");
        std::ifstream in(trace_.file, std::ios::binary);
        if (!in) throw ScheduleError(trace_.file + ": cannot be read");
        trace_.checksum = 0xcbf29ce484222325u;
        trace_.has_positions = true;
        while (std::getline(in, text_)) {
            ++line_;
            hash(text_);
            hash("\n");
            std::string_view line = text_;
            if (line_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (line.empty() && line_ > 1) continue;
            split(line, cells_);
            line_ == 1 ? read_header() : read_row();
        }
        if (line_ == 0) fail(1, "the file is empty; expected a header with the columns worker and read_version");
        if (trace_.gradients.empty() && numbered_.empty())
            fail(line_, "there is no row of a gradient that was accepted");
        if (seq_ != nowhere) put_in_order();
        check_versions();
        return std::move(trace_);
    }

private:
    [[noreturn]] void fail(std::int64_t line, const std::string& what) const {
        throw ScheduleError(trace_.file, line, what);
    }
    void hash(std::string_view text) {
        for (const char c : text) trace_.checksum = (trace_.checksum ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
    std::size_t column(std::string_view name) const {
        const auto it = std::find(cells_.begin(), cells_.end(), name);
        return it == cells_.end() ? nowhere : static_cast<std::size_t>(it - cells_.begin());
    }
    void read_header() {
        columns_ = cells_.size();
        worker_ = column("worker");
        version_ = column("read_version");
        seq_ = column("seq");
        epoch_ = column("data_epoch");
        first_ = column("data_first");
        count_ = column("count");
        for (const auto& [at, name] : {std::pair(worker_, "worker"), {version_, "read_version"}})
            if (at == nowhere)
                fail(1, std::string("the header has no column ") + name + "; expected worker and read_version");
    }
    std::int64_t whole(std::size_t at, const char* name) const {
        const std::string_view cell = cells_[at];
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
        if (error != std::errc() || end != cell.data() + cell.size())
            fail(line_, std::string(name) + ": expected a whole number, found \"" + std::string(cell) + "\"");
        return value;
    }
    void read_row() {
        if (cells_.size() != columns_)
            fail(line_, "expected " + std::to_string(columns_) + " cells as in the header, found " +
                            std::to_string(cells_.size()));
        Delay row;
        row.line = line_;
        const std::int64_t worker = whole(worker_, "worker");
        if (worker < 0 || worker >= lambda_)
            fail(line_, "worker: expected 0 to " + std::to_string(lambda_ - 1) + " (the scenario has " +
                            std::to_string(lambda_) + " workers), found " + std::to_string(worker));
        row.worker = static_cast<WorkerId>(worker);
        row.read_version = whole(version_, "read_version");
        if (row.read_version < 0)
            fail(line_, "read_version: expected at least 0, found " + std::to_string(row.read_version));
        if (epoch_ == nowhere || first_ == nowhere || cells_[epoch_].empty() || cells_[first_].empty()) {
            trace_.has_positions = false;
        } else {
            row.data_epoch = whole(epoch_, "data_epoch");
            row.data_first = whole(first_, "data_first");
        }
        if (count_ != nowhere && whole(count_, "count") != 1)
            fail(line_, "count: expected 1, found " + std::string(cells_[count_]) +
                            ": a schedule tells of single gradients, and this row of the sum of several "
                            "(workers.communication)");
        if (seq_ == nowhere) return trace_.gradients.push_back(row);
        const std::int64_t seq = whole(seq_, "seq");
        if (seq < -1) fail(line_, "seq: expected at least -1, found " + std::to_string(seq));
        if (seq >= 0)
            numbered_.emplace_back(seq, row);
        else if (std::none_of(trace_.unfinished.begin(), trace_.unfinished.end(),
                              [&](const Delay& other) { return other.worker == row.worker; }))
            trace_.unfinished.push_back(row);
    }
    void put_in_order() {
        std::stable_sort(numbered_.begin(), numbered_.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        trace_.gradients.reserve(numbered_.size());
        for (const auto& [seq, row] : numbered_) {
            const auto expected = static_cast<std::int64_t>(trace_.gradients.size());
            if (seq < expected) fail(row.line, "seq: " + std::to_string(seq) + " stands in an earlier row, too");
            if (seq > expected)
                fail(row.line, "seq: expected " + std::to_string(expected) + ", found " + std::to_string(seq) +
                                   ": rows are missing (trace.gradients {\"every\": ...} leaves them out)");
            trace_.gradients.push_back(row);
        }
    }
    void check_versions() const {
        for (std::size_t k = 0; k < trace_.gradients.size(); ++k) {
            const Delay& row = trace_.gradients[k];
            if (row.read_version > static_cast<std::int64_t>(k))
                fail(row.line, "read_version: gradient " + std::to_string(k) + " cannot have read version " +
                                   std::to_string(row.read_version) + ", which lies in its future: there are at most " +
                                   std::to_string(k) + " updates before it");
        }
    }

    DelayTrace trace_;
    int lambda_;
    std::string text_;
    std::int64_t line_ = 0;
    std::vector<std::string_view> cells_;
    std::size_t columns_ = 0;
    std::size_t worker_ = nowhere, version_ = nowhere, seq_ = nowhere, epoch_ = nowhere, first_ = nowhere,
                count_ = nowhere;
    std::vector<std::pair<std::int64_t, Delay>> numbered_;
};

}  // namespace

DelayTrace read_delays(const std::string& path, int lambda) {
    return Reader(path, lambda).read();
}

}  // namespace rubato::sim
