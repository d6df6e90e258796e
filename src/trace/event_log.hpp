// events.log: every step of every role as text, and its reader. docs/traces.md describes the format.
#pragma once

#include "core/role.hpp"

#include <iosfwd>
#include <string>

namespace rubato::trace {

/// One line for an event, e.g. "taken id=3 started_ns=12"; doubles round-trip exactly.
std::string to_text(const Event& event);
std::string to_text(const Action& action);
/// Inverse of to_text. Throws std::invalid_argument with what was expected.
Event event_from_text(const std::string& text);

struct ReplayResult {
    bool same = true;
    std::int64_t lines = 0;
    std::int64_t steps = 0;
    std::string difference;  ///< one line: role, event, line of the log, recorded and replayed action
};

/// Feeds the recorded events through fresh roles and demands the very same actions and rows. Every line bears a
/// checksum, so that any altered line is found.
ReplayResult replay(std::istream& log, std::vector<Role> roles);

}  // namespace rubato::trace
