// SIGINT and SIGTERM end a run in order: whole lines, a summary, exit status 3. A second one ends it at once, unless it
// comes within half a second: then it is an echo of the first.
#pragma once

#include <atomic>

namespace rubato::cli {

/// Installs the handlers; the flag becomes true with the first signal.
const std::atomic<bool>& watch_signals();

}  // namespace rubato::cli
