// Which shard is in which stage (Langer et al. 2018, MPCA SGD): pure arithmetic, so that a reader sees all of it.
//
//   1 phase    cycle j: broadcast all; then reduce all; then prepare all
//   2 phases   cycle j: broadcast shard j mod S beside the reduce of shard (j + 1) mod S; then prepare that one
//   3 phases   cycle j: reduce shard -j, prepare shard 1 - j and broadcast shard 2 - j, all mod S, beside each other
//
// So a shard goes reduce -> prepare -> broadcast -> reduce; with more shards than phases the others wait their turn.
#pragma once

#include <cstdint>

namespace rubato {

struct CyclePlan {
    int reduce = 0, prepare = 0, broadcast = 0;  ///< shards
    bool reduce_waits = false;                   ///< for the end of the broadcast
    bool prepare_waits = false;                  ///< for the end of the reduce
    bool operator==(const CyclePlan&) const = default;
};

/// shards: at least as many as phases.
inline CyclePlan plan_cycle(int phases, int shards, std::int64_t cycle) {
    const auto shard = [shards](std::int64_t number) {
        const std::int64_t rest = number % shards;
        return static_cast<int>(rest < 0 ? rest + shards : rest);
    };
    if (phases == 1) return {shard(cycle), shard(cycle), shard(cycle), true, true};
    if (phases == 2) return {shard(cycle + 1), shard(cycle + 1), shard(cycle), false, true};
    return {shard(-cycle), shard(1 - cycle), shard(2 - cycle), false, false};
}

}  // namespace rubato
