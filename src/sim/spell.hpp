// Spells at random: of slowness (cluster.stragglers) and of what is broken (faults).
#pragma once

#include "learn/random.hpp"

#include <cstdint>

namespace rubato::sim {

/// The spell at hand of one member of one entry of a list. Those at random have exponential times between them and
/// exponential lengths: a pure function of the seed, the purpose, the entry's place, the member and the spell's number.
struct Spell {
    std::uint64_t place = 0;        ///< of the entry in its list, below 2^16
    std::uint64_t number = 0;       ///< of the spell, below 2^40
    double begin_s = 0, end_s = 0;  ///< it is under way, or to come

    /// The index of a stream; entries of a list share none.
    static std::uint64_t index(std::uint64_t place, std::uint64_t number) { return place << 40 | number; }
    /// The next one begins after that time. every_s, for_s: means of the times between spells and of spells.
    void draw(std::uint64_t seed, std::uint32_t member, learn::Purpose purpose, double every_s, double for_s,
              double after_s) {
        learn::Stream stream(seed, member, purpose, index(place, number));
        begin_s = after_s + stream.exponential(every_s);
        end_s = begin_s + stream.exponential(for_s);
    }
};

}  // namespace rubato::sim
