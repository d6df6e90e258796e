// Writes events.log.
#pragma once

#include "core/action.hpp"
#include "trace/line_file.hpp"
#include "trace/log_format.hpp"

#include <string>

namespace rubato::trace {

/// Throws OutputError where the file cannot be written. Not safe for threads.
class EventLogWriter {
public:
    /// state: of the roles where the log begins, as text; empty: it begins with the run.
    EventLogWriter(const std::string& path, const LogHeader& header, const std::string& state = {});

    void step(Time now, RoleId role, const Event& event, const Actions& actions);
    /// A line of another log, as it is.
    void line(std::string_view kind, std::string_view body) { write(kind, body); }
    void flush() { file_.flush(); }
    /// Writes the last line and closes; without it the log reads as that of a killed run.
    void finish();
    /// Closes without what is not yet written.
    void abandon() { file_.abandon(); }

private:
    void write(std::string_view kind, std::string_view body);

    LineFile file_;
    ChecksumChain chain_;
    std::int64_t lines_ = 0;
};

}  // namespace rubato::trace
