#include "cli/signals.hpp"

#include <csignal>
#include <cstdint>
#include <ctime>

namespace rubato::cli {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<std::int64_t> first_ms{-1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may only touch what needs no lock");

/// A second signal within this time is the echo of the first: timeout(1) and terminals send one to the process and one
/// to its group.
constexpr std::int64_t echo_ms = 500;

std::int64_t now_ms() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// A later one is meant: a run that does not answer can still be ended.
void on_signal(int signal) {
    std::int64_t first = -1;
    if (first_ms.compare_exchange_strong(first, now_ms())) {
        interrupted.store(true, std::memory_order_relaxed);
        return;
    }
    if (now_ms() - first < echo_ms) return;
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

}  // namespace

const std::atomic<bool>& watch_signals() {
    struct sigaction action {};
    action.sa_handler = on_signal;
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
