// Weights that nobody asks for: whoever holds a new version gives it to its receivers.
#pragma once

#include "core/action.hpp"

namespace rubato {

/// Who is sent weights. One message at a time where they are sent unasked: of versions that come meanwhile it gets the
/// newest alone.
struct Receiver {
    RoleId role = 0;
    Version version = 0;    ///< the last one that it was sent
    std::int64_t sent = 0;  ///< replies, or weights that it did not ask for
    ActionId feeding = 0;   ///< unasked weights on their way; 0: none
    bool operator==(const Receiver&) const = default;
};

/// Sends `version` to each receiver that lacks it and is sent nothing. Returns the number of messages.
template <class Receivers, class NextId>
int feed(Receivers& receivers, Version version, const Slice& payload, NextId&& next_id, Actions& actions) {
    int count = 0;
    Weights weights;
    weights.version = version;
    for (auto& it : receivers) {
        if (it.feeding != 0 || it.version >= version) continue;
        it.version = version;
        ++it.sent;
        it.feeding = next_id();
        actions.add<Send>(it.feeding, it.role, Channel::weights, weights, payload);
        ++count;
    }
    return count;
}

/// Whether the message that was taken is one of these.
template <class Receivers>
bool was_fed(Receivers& receivers, ActionId id) {
    for (auto& it : receivers) {
        if (it.feeding != id) continue;
        it.feeding = 0;
        return true;
    }
    return false;
}

}  // namespace rubato
