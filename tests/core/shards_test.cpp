// How parameters are split over servers.
#include "core/shards.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <algorithm>
#include <numeric>

using namespace rubato;

namespace {

void check_cover(const std::vector<Range>& ranges, std::int64_t total, int shards) {
    RC_ASSERT(static_cast<int>(ranges.size()) == shards);
    std::int64_t next = 0;
    bool empty = false;
    for (const Range& range : ranges) {
        RC_ASSERT(range.first == next);
        RC_ASSERT(range.count >= 0);
        RC_ASSERT(!empty || range.count == 0);
        empty = range.count == 0;
        next = range.end();
    }
    RC_ASSERT(next == total);
}

/// The smallest possible largest group, by trying all ends of the first group.
std::int64_t least_largest(const std::vector<std::int64_t>& layers, std::size_t first, int groups) {
    const std::int64_t rest =
        std::accumulate(layers.begin() + static_cast<std::ptrdiff_t>(first), layers.end(), std::int64_t{0});
    if (groups == 1 || first + 1 >= layers.size()) return rest;
    std::int64_t least = rest, sum = 0;
    for (std::size_t i = first; i + 1 < layers.size(); ++i) {
        sum += layers[i];
        least = std::min(least, std::max(sum, least_largest(layers, i + 1, groups - 1)));
    }
    return least;
}

}  // namespace

TEST_CASE("shards: parts are contiguous, cover all, and those without elements come last") {
    CHECK(rc::check("parts", [] {
        const auto total = *rc::gen::inRange<std::int64_t>(1, 100'000);
        const int shards = *rc::gen::inRange(1, 40);
        const auto even = even_ranges(total, shards);
        check_cover(even, total, shards);
        RC_ASSERT(even.front().count - even.back().count <= 1);
        // A message is split without a byte too many or too few, however long it is.
        const Shards all(3, even);
        const auto message = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 50);
        std::int64_t sum = 0;
        for (int shard = 0; shard < shards; ++shard) sum += all.bytes(message, all.range(shard));
        RC_ASSERT(sum == message);
        RC_ASSERT(all.used() == std::min<std::int64_t>(total, shards));
    }));
}

TEST_CASE("shards: layers stay whole, and the largest shard is as small as can be") {
    CHECK(rc::check("layers", [] {
        const auto layers = *rc::gen::container<std::vector<std::int64_t>>(*rc::gen::inRange<std::size_t>(1, 9),
                                                                           rc::gen::inRange<std::int64_t>(1, 50));
        const int shards = *rc::gen::inRange(1, 11);
        const std::int64_t total = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
        const auto ranges = layer_ranges(layers, total, shards);
        check_cover(ranges, total, shards);
        std::vector<std::int64_t> ends{0};
        for (const auto layer : layers) ends.push_back(ends.back() + layer);
        std::int64_t largest = 0, used = 0;
        for (const Range& range : ranges) {
            RC_ASSERT(std::binary_search(ends.begin(), ends.end(), range.first));
            largest = std::max(largest, range.count);
            used += range.count > 0;
        }
        RC_ASSERT(used == std::min<std::int64_t>(shards, static_cast<std::int64_t>(layers.size())));
        RC_ASSERT(largest == least_largest(layers, 0, shards));
        // In another unit they are the same parts.
        const auto scaled = layer_ranges(layers, 4 * total, shards);
        for (std::size_t i = 0; i < ranges.size(); ++i) RC_ASSERT(scaled[i].count == 4 * ranges[i].count);
    }));
}

TEST_CASE("shards: AlexNet by layers, over 4 and 8 servers") {
    const std::vector<std::int64_t> layers{34'944,  307'456,    885'120,    663'936,
                                           442'624, 37'752'832, 16'781'312, 4'097'000};
    std::vector<std::int64_t> counts;
    for (const Range& range : layer_ranges(layers, 60'965'224, 4)) counts.push_back(range.count);
    CHECK(counts == std::vector<std::int64_t>{2'334'080, 37'752'832, 16'781'312, 4'097'000});
    counts.clear();
    for (const Range& range : layer_ranges(layers, 60'965'224, 8)) counts.push_back(range.count);
    CHECK(counts == layers);
}
