// How many threads are worth having.
#pragma once

#include <string>

namespace rubato::learn {

/// Cores that the calling thread is bound to, at least 1.
int bound_cores();

/// Cores' worth of time that the control groups of this process grant it, as a container's `--cpus` does, at least 1;
/// a part of a core counts as one. 0: no limit. root: where /proc and /sys stand, of versions 1 and 2 alike.
int granted_cores(const std::string& root = "");

/// The lesser of the two.
int usable_cores();

}  // namespace rubato::learn
