// What the monitor of GoSGD and its workers agree upon. Whom a worker hands its model to is pure arithmetic, so that a
// run says by itself who talks with whom.
#pragma once

#include "core/types.hpp"

#include <cstdint>
#include <vector>

namespace rubato {

/// What a Stop of the monitor's says in `replies`, where that is no number of models that the worker has been handed:
/// to take no more steps, but go on taking part in means; to leave.
constexpr std::int64_t no_more_steps = -1, leave_run = -2;

/// SplitMix64 (Steele, Lea and Flood 2014) of one word.
constexpr std::uint64_t scramble(std::uint64_t word) {
    word += 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

/// One of the others among `workers`, for the `number`-th hand-over of `worker`: a function of its arguments alone.
/// Each is as likely as the next one, but for a part of 2^-32. There has to be another.
inline WorkerId gossip_peer(std::uint64_t seed, WorkerId worker, std::int64_t number,
                            const std::vector<WorkerId>& workers) {
    const auto key = scramble(scramble(seed) ^ static_cast<std::uint64_t>(worker));
    const std::uint64_t word = scramble(key ^ static_cast<std::uint64_t>(number)) >> 32;
    const auto place = static_cast<std::size_t>(word * (workers.size() - 1) >> 32);
    std::size_t seen = 0;
    for (const WorkerId other : workers)
        if (other != worker && seen++ == place) return other;
    return worker;
}

}  // namespace rubato
