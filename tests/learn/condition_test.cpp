#include "learn/condition.hpp"

#include <doctest/doctest.h>

#include <ctime>
#include <thread>
#include <vector>

using namespace rubato::learn;

namespace {

/// Of this thread.
double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

TEST_CASE("two threads take turns, whether the other is soon done or takes long") {
    constexpr int turns = 400;
    std::mutex mutex;
    Condition changed;
    int turn = 0;
    const auto take_turns = [&](int parity) {
        for (int i = parity; i < turns; i += 2) {
            std::unique_lock lock(mutex);
            changed.wait(lock, [&] { return turn == i; });
            CHECK(lock.owns_lock());
            // Now and then so long that the other has gone to sleep.
            if (i % 16 < 2) std::this_thread::sleep_for(std::chrono::microseconds(300));
            ++turn;
            changed.notify_one();
        }
    };
    std::thread other([&] { take_turns(1); });
    take_turns(0);
    other.join();
    CHECK(turn == turns);
}

TEST_CASE("all who wait are told") {
    std::mutex mutex;
    Condition changed;
    bool open = false;
    int waiting = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            std::unique_lock lock(mutex);
            ++waiting;
            changed.wait(lock, [&] { return open; });
            --waiting;
        });
    }
    for (bool all = false; !all; std::this_thread::yield()) {
        const std::lock_guard lock(mutex);
        all = waiting == 4;
    }
    {
        const std::lock_guard lock(mutex);
        open = true;
    }
    changed.notify_all();
    for (auto& thread : threads) thread.join();
    CHECK(waiting == 0);
}

TEST_CASE("a notification for something else ends no wait, and who waits long leaves its core to others") {
    std::mutex mutex;
    Condition changed;
    bool done = false;
    std::thread other([&] {
        for (int i = 0; i < 20; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            const std::lock_guard lock(mutex);
            done = i == 19;
            changed.notify_all();
        }
    });
    const double before = cpu_seconds();
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return done; });
        CHECK(done);
    }
    // Of 100 ms or more.
    CHECK(cpu_seconds() - before < 0.05);
    other.join();
}

TEST_CASE("looks that come to nothing become seldom") {
    std::mutex mutex;
    Condition changed;
    constexpr int waits = 400;
    int asked = 0, answered = 0;
    std::thread other([&] {
        std::unique_lock lock(mutex);
        while (answered < waits) {
            lock.unlock();
            std::this_thread::sleep_for(std::chrono::microseconds(300));
            lock.lock();
            answered = asked;
            changed.notify_one();
        }
    });
    const double before = cpu_seconds();
    {
        std::unique_lock lock(mutex);
        while (asked < waits) {
            ++asked;
            changed.wait(lock, [&] { return answered == asked; });
        }
    }
    // With a look of 50 us before each sleep it would be 20 ms.
    CHECK(cpu_seconds() - before < 0.015);
    other.join();
}
