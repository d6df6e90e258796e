// Links that messages of a real run pretend to move over (execution.emulate.network).
#pragma once

#include "core/types.hpp"
#include "trace/run_input.hpp"

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace rubato::exec {

/// Holds messages back for as long as their way would take them if they had it for themselves. Those of one direction
/// between two roles move one after another, and so do those between one worker and all shards, which share its link;
/// others do not meet, since their senders may be on other hosts.
/// Thread-safe.
class EmulatedLinks {
public:
    /// `costs` must outlive this.
    explicit EmulatedLinks(const trace::EmulatedCosts& costs) : costs_(costs), thread_([this] { loop(); }) {}
    /// What is still under way is dropped.
    ~EmulatedLinks();
    EmulatedLinks(const EmulatedLinks&) = delete;
    EmulatedLinks& operator=(const EmulatedLinks&) = delete;

    /// Calls `arrive` on a thread of its own once a message that leaves now has come: latency plus bytes / bandwidth,
    /// after what went the same way before. Messages of 0 bytes take the latency and wait for nobody.
    void carry(RoleId from, RoleId to, std::int64_t bytes, std::function<void()> arrive);

private:
    using Clock = std::chrono::steady_clock;
    void loop();

    const trace::EmulatedCosts& costs_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::multimap<Clock::time_point, std::function<void()>> moving_;  ///< by arrival; of one instant in order
    /// From when on a direction is free again; shards are one.
    std::map<std::pair<RoleId, RoleId>, Clock::time_point> free_;
    bool closing_ = false;
    std::thread thread_;  ///< last: starts when the rest is there
};

}  // namespace rubato::exec
