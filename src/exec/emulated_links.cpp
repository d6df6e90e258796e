#include "exec/emulated_links.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::exec {

EmulatedLinks::~EmulatedLinks() {
    {
        std::lock_guard lock(mutex_);
        closing_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

void EmulatedLinks::carry(RoleId from, RoleId to, std::int64_t bytes, std::function<void()> arrive) {
    // Relays come after those whom they serve, shards after all workers, and the server of all has number 0.
    const auto [low, high] = std::minmax(from, to);
    const RoleId below = low == 0 ? high : low, above = low == 0 ? low : high;
    const Shards& shards = costs_.shards;
    const bool up = from == below;
    const auto& routes = up ? costs_.to_server : costs_.from_server;
    const auto& route = shards.any()
                            ? routes[static_cast<std::size_t>(shards.count()) * static_cast<std::size_t>(below - 1) +
                                     static_cast<std::size_t>(shards.shard_of(above))]
                            : routes[static_cast<std::size_t>(below - 1)];
    const RoleId end = shards.any() ? 0 : above;
    const auto duration = [](double seconds) {
        return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    {
        std::lock_guard lock(mutex_);
        auto leaves = Clock::now();
        if (bytes > 0 && std::isfinite(route.bytes_per_s)) {  // otherwise it stays on a host
            auto& free = free_[up ? std::pair(below, end) : std::pair(end, below)];
            leaves = free = std::max(free, leaves) + duration(static_cast<double>(bytes) / route.bytes_per_s);
        }
        moving_.emplace(leaves + duration(route.latency_s), std::move(arrive));
    }
    wake_.notify_one();
}

void EmulatedLinks::loop() {
    std::unique_lock lock(mutex_);
    while (!closing_) {
        if (moving_.empty()) {
            wake_.wait(lock);
            continue;
        }
        const auto first = moving_.begin();
        if (const auto due = first->first; due > Clock::now()) {
            wake_.wait_until(lock, due);
            continue;
        }
        const auto arrive = std::move(first->second);
        moving_.erase(first);
        lock.unlock();
        arrive();
        lock.lock();
    }
}

}  // namespace rubato::exec
