// Weights that nobody asks for: whoever holds a new version gives it to its receivers.
#pragma once

#include "core/types.hpp"

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

/// Has `send(receiver)`, which returns the id of the action, send `version` to each receiver that lacks it and is sent
/// nothing.
template <class Receivers, class F>
void feed(Receivers& receivers, Version version, F&& send) {
    for (auto& it : receivers) {
        if (it.feeding != 0 || it.version >= version) continue;
        it.version = version;
        ++it.sent;
        it.feeding = send(it);
    }
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
