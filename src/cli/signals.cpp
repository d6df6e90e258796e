#include "cli/signals.hpp"

#include <csignal>

namespace rubato::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch what needs no lock");

void on_signal(int) {
    interrupted.store(true, std::memory_order_relaxed);
}

}  // namespace

const std::atomic<bool>& watch_signals() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    // After the first, the default: a run that does not answer can still be ended.
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    return interrupted;
}

}  // namespace rubato::cli
