// results.csv: a row a point, appended by any number of processes.
#pragma once

#include "cli/sweep/claims.hpp"
#include "cli/sweep/point.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::cli {

/// Columns of a sweep's rows: point, phase, label, seed, the swept keys, status, status_detail, the figures of a
/// summary, version. The last one also tells a whole row from one that a kill has cut.
std::vector<std::string> result_columns(const SweepFile& sweep);

/// One row in this order, without its newline. `figures`: the cells of trace::summary_columns; empty: none is known.
std::string result_row(const Setting& setting, Phase phase, std::int64_t seed, std::uint64_t identity,
                       std::string_view status, std::string_view detail, const std::string& figures);

/// A row that was read.
struct ResultRow {
    std::uint64_t identity = 0;
    const std::vector<std::string>& cells;  ///< in the order of Results::header
};

/// Rows are written whole, one write(2) at a time, by the holder of Claims::Writing; a kill in the middle breaks at
/// most the last line, which readers skip with a warning and the next writer ends. Throws trace::OutputError where the
/// file cannot be written, and InputError where it is no table of results.
class Results {
public:
    /// Nothing is opened or made yet.
    Results(const std::string& directory, std::vector<std::string> columns);
    ~Results();
    Results(const Results&) = delete;
    Results& operator=(const Results&) = delete;

    using Take = std::function<void(const ResultRow&)>;

    /// Cells of the swept keys of one of this sweep's points; null for other points.
    using SweptCells = std::function<const std::vector<std::string>*(std::uint64_t identity)>;

    /// Makes the file, or widens the table where this sweep has columns that it lacks: old rows get empty cells, those
    /// of this sweep's points what `swept` says, and likewise where the sweep has `changed`. Returns whether an older
    /// table was widened.
    bool open_for_writing(Claims& claims, const SweptCells& swept, bool changed);
    /// Rows that were appended since the last call, in order; all of them after another process has rewritten the
    /// table. Nothing where there is no file.
    void read_new(const Take& take);
    /// Appends rows in the order of result_columns, each with its newline; `take` gets them as well as those that
    /// others have appended before. On an error nothing of them is left behind.
    void append(Claims& claims, const std::string& lines, const Take& take);
    /// Drops broken rows, and all but the last row of each point: a failed point that was tried again has one row, too.
    void drop_superseded(Claims& claims);
    /// Whether a broken row was skipped.
    bool has_broken() const { return broken_; }
    /// Whether read_new would find something.
    bool has_grown() const;

    const std::vector<std::string>& header() const { return header_; }
    /// Another number for another header, so that readers look columns up once.
    int generation() const { return generation_; }
    /// Throws InputError where the table has no such column.
    std::size_t column(std::string_view name) const;

private:
    bool open_for_reading();
    void close();
    void read_header();
    void end_last_line();
    bool is_whole(std::string_view line);
    void take_line(std::string_view line, const Take& take);
    std::string in_order_of_the_file(const std::string& lines) const;
    void widen(const std::string& text, const SweptCells& swept);
    [[noreturn]] void fail(int error) const;

    std::string path_;
    std::vector<std::string> columns_;  ///< of this sweep
    std::vector<std::string> header_;   ///< of the file
    std::vector<std::size_t> places_;   ///< [column of the sweep] in the file; empty: the same order
    std::vector<std::string> cells_;
    std::size_t version_ = 0;  ///< its column
    int descriptor_ = -1;
    bool writable_ = false;
    bool broken_ = false;
    bool foreign_ = false;  ///< a spreadsheet has left its line ends or a mark before the header
    int generation_ = 0;
    std::int64_t read_ = 0;  ///< bytes up to the last whole line that was read
    std::int64_t line_ = 0;
};

}  // namespace rubato::cli
