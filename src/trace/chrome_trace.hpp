// timeline.csv as the Chrome trace JSON that Perfetto opens.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace rubato::trace {

/// Reads the text of timeline.csv and writes one complete ("X") event a span: a process a role, a thread a kind of
/// work, times in microseconds. A broken last line is left out. Throws std::invalid_argument, with the line, where the
/// text is no timeline.
void write_chrome_trace(std::istream& timeline, std::ostream& out);

/// One of several timelines that are to stand in one trace.
struct NamedTimeline {
    std::string name;  ///< letters, digits, `-` and `_`
    std::istream* timeline = nullptr;
};

/// The same of several runs: a process a timeline, with the threads of its roles in their order, one for each kind of
/// work; spans of one kind that overlap, such as transfers of a server, get as many threads as it takes. All begin at
/// the same zero.
void write_chrome_traces(const std::vector<NamedTimeline>& timelines, std::ostream& out);

}  // namespace rubato::trace
