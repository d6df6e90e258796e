// What the ranks of one run write apart, each in a file of its own, and how rank 0 makes one of it at the end.
#pragma once

#include "core/types.hpp"
#include "trace/log_format.hpp"

#include <string>

namespace rubato::trace {

/// DIRECTORY/ranks/NAME.RANK; a run that was killed leaves these behind.
std::string part_path(const std::string& directory, const std::string& name, int rank);

/// Makes timeline.csv of its parts, rank by rank, and removes them. A part that is missing, or a broken last line of
/// one, is left out. Throws OutputError.
void merge_timelines(const std::string& directory, int ranks);

/// Makes events.log of its parts in the order of time (of one time: by rank; what a rank wrote keeps its order), and
/// removes them. Of a rank that was lost it has what that rank had written. state: see EventLogWriter. Throws
/// OutputError.
void merge_event_logs(const std::string& directory, int ranks, const LogHeader& header, const std::string& state = {});

/// Writes to `path` what the parts of a run that was killed have, without an end; they stay. Returns false where there
/// are none. Throws OutputError, and as read_header does.
bool join_event_logs(const std::string& directory, const std::string& path);

/// Of a part of timeline.csv keeps what was over at `now_ns`, when a run goes on from there. Returns its size; -1:
/// there is no such part. Throws OutputError.
std::int64_t keep_part_until(const std::string& path, Time now_ns);

/// Removes all parts, of this run or an earlier one.
void remove_parts(const std::string& directory);

}  // namespace rubato::trace
