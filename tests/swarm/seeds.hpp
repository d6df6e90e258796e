// Random runs by numbered seeds.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>

namespace rubato::test {

/// Calls `check(seed)`, which throws where something is wrong, for seeds 1 to `count`, or to RUBATO_SWARM_RUNS;
/// RUBATO_SWARM_SEED repeats one.
template <class Check>
void for_seeds(std::uint64_t count, Check&& check) {
    const char* one = std::getenv("RUBATO_SWARM_SEED");
    const char* runs = std::getenv("RUBATO_SWARM_RUNS");
    const std::uint64_t first = one ? std::strtoull(one, nullptr, 10) : 1;
    if (one || runs) count = one ? 1 : std::strtoull(runs, nullptr, 10);
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        INFO("repeat with RUBATO_SWARM_SEED=", seed);
        REQUIRE_NOTHROW(check(seed));
    }
}

}  // namespace rubato::test
