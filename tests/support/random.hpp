// Random numbers of tests: the same in every run and on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rubato::test {

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random {
    std::uint64_t state;
    std::uint64_t next() {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }
};

}  // namespace rubato::test
