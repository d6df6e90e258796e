#include "trace/event_log.hpp"

#include "trace/replay.hpp"

#include <utility>

namespace rubato::trace {

ReplayResult replay(std::istream& log, std::vector<Role> roles) {
    const RoleName names = [lambda = workers_among(roles)](RoleId role) { return role_name(role, lambda); };
    return replay_roles(log, std::move(roles), names);
}

ReplayResult replay(std::istream& log, std::vector<Role> roles, const SeeStep& see) {
    const RoleName names = [lambda = workers_among(roles)](RoleId role) { return role_name(role, lambda); };
    return replay_roles(log, std::move(roles), names, see);
}

}  // namespace rubato::trace
