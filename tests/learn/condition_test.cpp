#include "learn/condition.hpp"

#include <doctest/doctest.h>

#include <ctime>
#include <thread>
#include <vector>

using namespace rubato::learn;

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
    const auto cpu_seconds = [] {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
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
