// The files of a run directory.
#pragma once

#include "trace/event_log_writer.hpp"
#include "trace/figures.hpp"
#include "trace/line_file.hpp"
#include "trace/recorder.hpp"

#include <optional>
#include <string>

namespace rubato::trace {

/// Every member but the destructor throws OutputError (one line). Not safe for threads.
class Output {
public:
    /// Of a run of several processes, rank 0 writes all tables and the summary; timeline.csv and events.log are made of
    /// parts that every rank writes (trace/rank_parts.hpp), and these are all that other ranks write.
    ///
    /// Creates the directory, removes what an earlier run left there and begins the files that the scenario asks for,
    /// or goes on with them (options.resume); a log of events always begins.
    Output(const Scenario& scenario, const RecorderOptions& options);
    ~Output();
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    /// Whether any file has a row or line for what a step said.
    bool takes(const Actions& actions) const;
    void write_rows(const Actions& rows);
    void write(Time now, RoleId role, const Event& event, const Actions& actions);
    /// The step alone, for the log of events.
    void log(Time now, RoleId role, const Event& event, const Actions& actions);
    /// Hands the tables to the kernel and tells how long they are.
    TableSizes mark();
    void write(const Span& span);
    void write(const FaultRow& row);
    bool logs_events() const { return log_.has_value(); }
    void flush();
    /// Closes what rows go to; the parts of a rank are whole then.
    void close();
    /// Closes the files above, makes one file of each of the ranks' parts, and writes workers.csv and servers.csv. Of a
    /// run that ended as disk_full, the files above lose what is not yet written, and the rest has the room that was
    /// kept for it.
    void finish(Figures& figures, const DriverReport& report, const std::vector<Place>& places);
    /// The very last file.
    void write_summary(const std::string& text);

private:
    /// A run with --force must not leave a mixture of two: what this one writes late or not at all goes first.
    void begin_parts(const TraceSpec& trace, const std::optional<RecorderResume>& resume);
    void remove_leftovers(const TraceSpec& trace, bool resumes) const;
    /// workers.csv and servers.csv.
    void write_tables(Figures& figures, const DriverReport& report, const std::vector<Place>& places);
    /// A table from its beginning, or from `size` on.
    void open(std::optional<LineFile>& file, const std::string& path, std::string_view header, std::int64_t size) const;
    void abandon();
    bool keeps(const GradientRow& row) const;
    void write(const GradientRow& row);
    std::string path(const char* name) const { return directory_ + "/" + name; }

    LogHeader header_;
    std::string state_;  ///< of the roles at the beginning of the log
    std::string directory_;
    int rank_;
    std::int64_t every_;
    bool sums_;  ///< rows of gradients may stand for several
    std::optional<LineFile> gradients_, updates_, evals_, timeline_, controller_, faults_, shards_, rounds_, exchanges_,
        iterations_, layers_;
    std::int64_t faults_size_ = -1;  ///< of what a run has that goes on
    std::optional<EventLogWriter> log_;
};

}  // namespace rubato::trace
