#include "trace/run_check.hpp"

#include "trace/summary.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace rubato::trace {
namespace {

constexpr double tolerance = 0.01;

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::invalid_argument("cannot read " + path);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Cells by column; names of hosts with commas are quoted.
std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells(1);
    bool in_quotes = false;
    for (const char c : line) {
        if (c == '"')
            in_quotes = !in_quotes;
        else if (c == ',' && !in_quotes)
            cells.emplace_back();
        else
            cells.back() += c;
    }
    return cells;
}

using Row = std::map<std::string, std::string>;

std::vector<Row> read_table(const std::string& path) {
    std::istringstream in(read_file(path));
    std::string line;
    std::getline(in, line);
    const auto header = cells_of(line);
    std::vector<Row> rows;
    while (std::getline(in, line)) {
        const auto cells = cells_of(line);
        if (cells.size() != header.size()) throw std::invalid_argument(path + ": a row of another length");
        Row& row = rows.emplace_back();
        for (std::size_t i = 0; i < cells.size(); ++i) row[header[i]] = cells[i];
    }
    return rows;
}

double number(const std::string& text) {
    return std::strtod(text.c_str(), nullptr);
}

/// Every column in seconds.
std::string check_seconds(const std::string& who, const Row& row, double run_s) {
    double sum = 0;
    for (const auto& [column, text] : row)
        if (column.ends_with("_s")) sum += number(text);
    if (std::abs(sum - run_s) <= tolerance * run_s) return {};
    return fmt::format("{}: the times add up to {} s, the run took {} s", who, sum, run_s);
}

std::string check_outcomes(const SummaryView& summary, const std::vector<Row>& workers) {
    if (summary.histogram_total != summary.gradients.applied)
        return fmt::format("the staleness histogram counts {} gradients, {} were applied", summary.histogram_total,
                           summary.gradients.applied);
    const std::pair<const char*, std::int64_t> totals[] = {{"applied", summary.gradients.applied},
                                                           {"dropped", summary.gradients.dropped},
                                                           {"cancelled", summary.gradients.cancelled},
                                                           {"leftover", summary.gradients.leftover}};
    for (const auto& [column, total] : totals) {
        double sum = 0;
        for (const Row& row : workers) sum += number(row.at(column));
        if (sum != static_cast<double>(total))
            return fmt::format("gradients {}: {} in summary.json, {} in workers.csv", column, total, sum);
    }
    return {};
}

}  // namespace

std::string check_run(const std::string& directory) {
    const SummaryView summary = read_summary(read_file(directory + "/summary.json"));
    const auto workers = read_table(directory + "/workers.csv");
    std::string found = check_outcomes(summary, workers);
    for (const Row& row : workers)
        if (found.empty() && !row.at("compute_s").empty())
            found = check_seconds("worker " + row.at("worker"), row, summary.time_s);
    for (const Row& row : read_table(directory + "/servers.csv"))
        if (found.empty()) found = check_seconds("server " + row.at("role"), row, summary.time_s);
    return found;
}

std::string check_times(const WorkerRow& row, Time run_ns) {
    const Time sum = row.sum_ns();
    if (std::abs(static_cast<double>(sum - run_ns)) <= tolerance * static_cast<double>(run_ns)) return {};
    return fmt::format("worker {}: the times add up to {} ns, the run took {} ns", row.worker, sum, run_ns);
}

}  // namespace rubato::trace
