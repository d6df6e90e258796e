// events.log: every step of every role as text, and its reader. docs/traces.md describes the format.
#pragma once

#include "core/role.hpp"
#include "trace/event_text.hpp"
#include "trace/log_format.hpp"
#include "trace/replay_result.hpp"

#include <functional>
#include <iosfwd>
#include <vector>

namespace rubato::trace {

/// Feeds the recorded events through fresh roles and demands the very same actions and rows. Every line bears a
/// checksum, so that any altered line is found. A log without its end (a killed run) is replayed as far as it goes:
/// ReplayResult::complete is false.
ReplayResult replay(std::istream& log, std::vector<Role> roles);

/// Sees a step that was replayed with the very same actions; false ends the replay.
using SeeStep = std::function<bool(Time, RoleId, const Event&, const Actions&)>;

/// The same, and shows every step to `see`; what it throws comes through.
ReplayResult replay(std::istream& log, std::vector<Role> roles, const SeeStep& see);

}  // namespace rubato::trace
