// The way of an allreduce: what one rank sends to whom, and what it does with what comes, for each algorithm.
//
// Textbook costs of n ranks, a message of M bytes, latency a and b seconds a byte, links that send and receive at once
// (Thakur, Rabenseifner and Gropp 2005, section 4):
//   ring, ordered       ring: 2 (n - 1) a + 2 (n - 1) / n M b; ordered: 2 a + 2 (n - 1) / n M b
//   recursive doubling  log2(n) (a + M b)
//   rabenseifner        2 log2(n) a + 2 (n - 1) / n M b
//   tree (binomial)     2 log2(n) (a + M b)
//   native              whatever the library makes of it
#pragma once

#include "core/shards.hpp"

#include <cstdint>
#include <vector>

namespace rubato {

/// What one rank does, in order. An `Out` is sent as soon as the first `after` of the `ins` are done, before the next
/// of them is begun; the ins are done one after the other.
struct Route {
    struct Out {
        int to = 0;
        Range what;
        std::size_t after = 0;
        bool own = false;    ///< the rank's own contribution as it is, not what has been summed
        bool alone = false;  ///< not before those ahead of it are taken, so that they have the link for themselves
        bool operator==(const Out&) const = default;
    };
    enum class Work : std::uint8_t {
        fold,    ///< is added to the sum, in its place, which was not sent to anybody yet
        renew,   ///< is added to the sum, which may be under way to somebody and stays as it is there
        place,   ///< is the sum of all
        word,    ///< nothing: the sender is ready for what comes next
        library  ///< becomes the sum of all, by the library of the driver
    };
    struct In {
        int from = 0;  ///< the rank itself: its own contribution; library: -1
        Range what;
        Work work = Work::fold;
        bool operator==(const In&) const = default;
    };
    std::vector<Out> outs;
    std::vector<In> ins;
    bool begins_empty = false;  ///< the sum begins with the first of the ins, not with the rank's own contribution
    bool operator==(const Route&) const = default;
};

/// rank: 0 to size - 1 of `size` that add up `what`. Parts without elements are sent by nobody and waited for by
/// nobody. All ranks end with the same bits. ordered: each element is summed in the order of the ranks, however many
/// there are and whatever `what` is a part of. paced: ranks that have nobody beyond a power of two to wait for wait for
/// the word of one that has, so that their messages do not share a link with those; it costs a latency.
Route make_route(AllreduceAlgorithm algorithm, int rank, int size, const Range& what, bool paced = false);

}  // namespace rubato
