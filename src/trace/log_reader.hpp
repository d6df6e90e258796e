// Reads an event log line by line, checks the chain of checksums, and compares what it holds with a replay.
#pragma once

#include "core/event.hpp"
#include "trace/log_format.hpp"
#include "trace/replay_result.hpp"

#include <functional>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::trace {

/// Steps through the events of a log; after the first difference there is no next one.
class LogReader {
public:
    /// The log must outlive the reader.
    LogReader(std::istream& log, std::function<std::string(RoleId)> role_name);

    /// Moves to the next event and is true, or false at the end of the log and after a difference.
    bool next_event();
    RoleId role() const { return role_; }  ///< never negative
    Time now() const { return now_; }
    const Event& event() const { return event_; }

    /// Compares the lines that follow the event, each "A text" or "R text", with those of the replay. False where they
    /// differ or a line was altered.
    bool compare(const std::vector<std::string>& replayed);
    /// Reports a difference at the line of the event.
    void differ(const std::string& what) { report(what); }
    ReplayResult result() const;

private:
    /// Reads one line into line_; false at the end.
    bool read_line();
    /// The current line bears the checksum that it should; moves the chain on.
    bool checksum_holds();
    /// The current line is the last, has no newline and is the beginning of this one: the run was killed while it was
    /// written. `before` is the chain before the line.
    bool broken_off(ChecksumChain before, std::string_view kind, std::string_view body) const;
    /// Ends the reading with a difference at the current line; always false.
    bool report(const std::string& what);
    /// Ends the reading without one; always false.
    bool finish();
    bool read_header_line();
    bool read_event_line();
    bool read_end_line();
    void parse_event();
    void name_altered_event();

    std::istream& log_;
    std::function<std::string(RoleId)> role_name_;
    ChecksumChain chain_;
    std::string line_;
    LogLine parts_;             ///< of line_
    bool has_line_ = false;     ///< line_ is read and not yet dealt with
    bool has_newline_ = false;  ///< line_ ended with one
    bool done_ = false, ended_ = false;
    std::int64_t lines_ = 0, steps_ = 0;
    RoleId role_ = 0;
    Time now_ = 0;
    Event event_;
    std::string place_;  ///< role and event, for reports
    std::string difference_;
};

}  // namespace rubato::trace
