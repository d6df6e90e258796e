#include "trace/event_log.hpp"

#include "trace/replay.hpp"

#include <utility>

namespace rubato::trace {

ReplayResult replay(std::istream& log, std::vector<Role> roles) {
    return replay_roles(log, std::move(roles), &role_name);
}

}  // namespace rubato::trace
