// A condition variable for threads that seldom wait for long.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace rubato::learn {

/// Who waits looks for a while before it sleeps: a core that has gone to sleep takes tens of microseconds to wake, on
/// virtual machines above all, which is a good part of a small model's gradient. Where looking comes to nothing, as on
/// a busy machine, whose other programs need the core, it is tried more and more seldom.
class Condition {
public:
    /// Of those who sleep; all who look have a look at what they wait for.
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
            if (left_out_ > 0) {
                --left_out_;
                return condition_.wait(lock, holds);
            }
            const auto told = told_.load(std::memory_order_relaxed);
            lock.unlock();
            const bool any = look(told);
            lock.lock();
            in_vain_ = any ? in_vain_ / 2 : std::min(2 * in_vain_ + 1, most_in_vain);
            if (any) continue;
            left_out_ = in_vain_;
            return condition_.wait(lock, holds);
        }
    }

private:
    static constexpr int most_in_vain = 255;

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
    // With the lock held.
    int in_vain_ = 0;   ///< grows with looks that came to nothing, and falls with others
    int left_out_ = 0;  ///< waits to sleep through at once
};

}  // namespace rubato::learn
