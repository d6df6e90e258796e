// How long nothing has come from another rank, outside of a run.
#pragma once

#include "core/types.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace rubato::exec {

/// Since when nothing was heard, without the times in which this rank stood still itself.
class Silence {
public:
    void heard() { since_ns_ = now_ns(); }
    Time look() {
        const Time now = now_ns();
        if (const Time gap = now - std::exchange(looked_ns_, now); gap > 500'000'000) since_ns_ += gap;
        return now - since_ns_;
    }

private:
    static Time now_ns() {
        using namespace std::chrono;
        return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
    }

    Time since_ns_ = now_ns(), looked_ns_ = since_ns_;
};

/// Calls `late`, on a thread of its own, unless it is gone before. Counts its naps, since a process that was stopped
/// has not waited.
class Deadline {
public:
    Deadline(Time limit_ns, std::function<void()> late) : gone_(std::make_shared<std::atomic<bool>>(false)) {
        std::thread([gone = gone_, limit_ns, late = std::move(late)] {
            constexpr Time nap_ns = 100'000'000;
            for (Time waited = 0; waited < limit_ns && !*gone; waited += nap_ns)
                std::this_thread::sleep_for(std::chrono::nanoseconds(nap_ns));
            if (!*gone) late();
        }).detach();
    }
    ~Deadline() {
        if (gone_) *gone_ = true;
    }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
    /// It holds for the rest of the program.
    void let_run() { gone_.reset(); }

private:
    std::shared_ptr<std::atomic<bool>> gone_;
};

/// How often one says that it is alive to those who wait for at most so long.
inline std::chrono::nanoseconds word_interval(Time limit_ns) {
    return std::chrono::nanoseconds(std::clamp<Time>(limit_ns / 8, 10'000'000, 1'000'000'000));
}

/// Between two looks at messages that are not there yet.
inline void rest() {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace rubato::exec
