// What all roles do with buffers that they have done with.
#pragma once

#include "core/action.hpp"

namespace rubato {

/// A role ends the reference that it owns, if it has one.
inline void let_go(BufferId& buffer, Actions& actions) {
    if (buffer != no_buffer) actions.add<Release>(buffer);
    buffer = no_buffer;
}

}  // namespace rubato
