// How many threads are worth having.
#pragma once

namespace rubato::learn {

/// Cores that the calling thread may use: those it is bound to, at least 1.
int usable_cores();

}  // namespace rubato::learn
