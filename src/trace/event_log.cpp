#include "trace/event_log.hpp"

#include "trace/replay.hpp"

#include <utility>

namespace rubato::trace {

ReplayResult replay(std::istream& log, std::vector<Role> roles) {
    return replay_roles(log, std::move(roles), &role_name);
}

ReplayResult replay(std::istream& log, std::vector<Role> roles, const SeeStep& see) {
    return replay_roles(log, std::move(roles), &role_name, see);
}

}  // namespace rubato::trace
