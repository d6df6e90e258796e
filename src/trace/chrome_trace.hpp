// timeline.csv as the Chrome trace JSON that Perfetto opens.
#pragma once

#include <iosfwd>

namespace rubato::trace {

/// Reads the text of timeline.csv and writes one complete ("X") event a span: a process a role, a thread a kind of
/// work, times in microseconds. A broken last line is left out. Throws std::invalid_argument, with the line, where the
/// text is no timeline.
void write_chrome_trace(std::istream& timeline, std::ostream& out);

}  // namespace rubato::trace
