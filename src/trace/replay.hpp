// Replay of an event log through fresh roles of any kind; event_log.cpp does it for those of the core.
#pragma once

#include "trace/event_text.hpp"
#include "trace/log_reader.hpp"
#include "trace/replay_result.hpp"

#include <exception>
#include <functional>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rubato::trace {

/// "server", "worker 3".
using RoleName = std::function<std::string(RoleId)>;

/// Feeds the recorded events through `roles` (a step(Role&, Time, const Event&, Actions&) is found by
/// argument-dependent lookup) and stops at the first difference. Each step that is the same goes to
/// see(Time, RoleId, const Event&, const Actions&), which says whether to go on; what it throws is not caught.
template <class AnyRole, class See>
ReplayResult replay_roles(std::istream& log, std::vector<AnyRole> roles, RoleName role_name, See&& see) {
    LogReader reader(log, role_name);
    Actions actions;
    std::vector<std::string> replayed;
    while (reader.next_event()) {
        const RoleId role = reader.role();
        if (static_cast<std::size_t>(role) >= roles.size()) {
            reader.differ("the log has a role that the scenario has not");
            break;
        }
        actions.clear();
        try {
            step(roles[static_cast<std::size_t>(role)], reader.now(), reader.event(), actions);
        } catch (const std::exception& error) {
            reader.differ(std::string("replayed: ") + error.what());
            break;
        }
        replayed.clear();
        each_line(actions, [&](char kind, std::string text) { replayed.push_back(std::string{kind, ' '} += text); });
        const bool same = reader.compare(replayed);
        // Of a log that breaks off the last step may lack actions; the roles know them all the same.
        if (!reader.result().same) break;
        if (!see(reader.now(), role, reader.event(), actions) || !same) break;
    }
    return reader.result();
}

/// The same with nobody who looks on.
template <class AnyRole>
ReplayResult replay_roles(std::istream& log, std::vector<AnyRole> roles, RoleName role_name) {
    return replay_roles(log, std::move(roles), role_name,
                        [](Time, RoleId, const Event&, const Actions&) { return true; });
}

}  // namespace rubato::trace
