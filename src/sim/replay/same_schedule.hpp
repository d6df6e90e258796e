// Whether two lists of actions make the same schedule: the same messages, batches, buffers and ids in the same order.
#pragma once

#include "core/action.hpp"

#include <stdexcept>

namespace rubato::sim {

/// The numbers of the update rule (factors of parts and folds, learning rates, momentum) and the versions that it has
/// kept may differ, and so may the rows, though not how many there are.
bool same_schedule(const Actions& a, const Actions& b);

/// The rule would not keep to the recorded schedule; what() is one line.
struct ScheduleChanged : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws ScheduleChanged, with time and role, where they are not the same.
void require_same_schedule(Time now, RoleId role, const Actions& recorded, const Actions& actions);

}  // namespace rubato::sim
