// A condition variable for threads that seldom wait for long.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace rubato::learn {

/// Who waits looks for a while before it sleeps: a core that has gone to sleep takes tens of microseconds to wake, on
/// virtual machines above all, which is a good part of a small model's gradient.
class Condition {
public:
    void notify_one() {
        told_.fetch_add(1, std::memory_order_relaxed);
        condition_.notify_one();
    }
    void notify_all() {
        told_.fetch_add(1, std::memory_order_relaxed);
        condition_.notify_all();
    }
    /// Returns once `holds()`, which is called with the lock held.
    template <class Holds>
    void wait(std::unique_lock<std::mutex>& lock, Holds&& holds) {
        while (!holds()) {
            const auto told = told_.load(std::memory_order_relaxed);
            lock.unlock();
            const bool any = look(told);
            lock.lock();
            if (!any) return condition_.wait(lock, holds);
        }
    }

private:
    /// Whether somebody notifies soon.
    bool look(std::uint32_t told) const {
        constexpr std::chrono::microseconds long_enough{50};
        constexpr int between_clocks = 20;
        const auto end = std::chrono::steady_clock::now() + long_enough;
        do {
            for (int i = 0; i < between_clocks; ++i) {
                if (told_.load(std::memory_order_relaxed) != told) return true;
                pause();
            }
        } while (std::chrono::steady_clock::now() < end);
        return false;
    }
    static void pause() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    std::condition_variable condition_;
    std::atomic<std::uint32_t> told_ = 0;
};

}  // namespace rubato::learn
