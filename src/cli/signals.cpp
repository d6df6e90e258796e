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
    // Under nohup the end of the terminal stays ignored.
    struct sigaction before {};
    sigaction(SIGHUP, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
    // A limit on file sizes is then an error of write(), like a full disk.
    std::signal(SIGXFSZ, SIG_IGN);
    return interrupted;
}

}  // namespace rubato::cli
