#include "core/shards.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rubato {
namespace {

__extension__ using Wide = __int128;

/// floor(a * b / c), without overflow on the way.
std::int64_t scaled(std::int64_t a, std::int64_t b, std::int64_t c) {
    return c == 0 ? 0 : static_cast<std::int64_t>(Wide{a} * b / c);
}

/// Ends of the groups of layers: `groups` of them, none empty.
std::vector<std::size_t> group_ends(const std::vector<std::int64_t>& layers, std::size_t groups) {
    const std::size_t n = layers.size();
    std::vector<std::int64_t> sums(n + 1, 0);
    std::partial_sum(layers.begin(), layers.end(), sums.begin() + 1);
    const auto size = [&](std::size_t from, std::size_t to) { return sums[to] - sums[from]; };
    // largest[g][i]: the smallest possible largest group where the first i layers make g groups.
    constexpr std::int64_t never = INT64_MAX;
    std::vector<std::vector<std::int64_t>> largest(groups + 1, std::vector<std::int64_t>(n + 1, never));
    largest[0][0] = 0;
    for (std::size_t g = 1; g <= groups; ++g)
        for (std::size_t i = g; i <= n; ++i)
            for (std::size_t j = g - 1; j < i; ++j)
                if (largest[g - 1][j] != never)
                    largest[g][i] = std::min(largest[g][i], std::max(largest[g - 1][j], size(j, i)));
    const std::int64_t limit = largest[groups][n];
    // Among those the most even ones. The squares need no exactness beyond that of doubles.
    constexpr double no_way = 1e300;
    std::vector<std::vector<double>> squares(groups + 1, std::vector<double>(n + 1, no_way));
    std::vector<std::vector<std::size_t>> before(groups + 1, std::vector<std::size_t>(n + 1, 0));
    squares[0][0] = 0;
    for (std::size_t g = 1; g <= groups; ++g)
        for (std::size_t i = g; i <= n; ++i)
            for (std::size_t j = g - 1; j < i; ++j) {
                if (squares[g - 1][j] == no_way || size(j, i) > limit) continue;
                const auto its = static_cast<double>(size(j, i));
                const double sum = squares[g - 1][j] + its * its;
                if (sum >= squares[g][i]) continue;
                squares[g][i] = sum;
                before[g][i] = j;
            }
    std::vector<std::size_t> ends(groups);
    for (std::size_t g = groups, i = n; g > 0; i = before[g][i], --g) ends[g - 1] = i;
    return ends;
}

}  // namespace

int Shards::used() const {
    if (!any()) return 1;
    return static_cast<int>(
        std::count_if(ranges_.begin(), ranges_.end(), [](const Range& range) { return range.count > 0; }));
}

std::int64_t part_bytes(std::int64_t message, const Range& part, std::int64_t total) {
    return scaled(message, part.end(), total) - scaled(message, part.first, total);
}

std::vector<Range> even_ranges(std::int64_t total, int shards) {
    std::vector<Range> ranges;
    std::int64_t first = 0;
    for (int shard = 0; shard < shards; ++shard) {
        const std::int64_t count = total / shards + (shard < total % shards ? 1 : 0);
        ranges.push_back({first, count});
        first += count;
    }
    return ranges;
}

std::vector<Range> proportional_ranges(const std::vector<double>& sizes, std::int64_t total) {
    const double all = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    std::vector<Range> ranges;
    std::int64_t first = 0;
    double done = 0;
    for (const double size : sizes) {
        done += size;
        const std::int64_t end =
            ranges.size() + 1 == sizes.size()
                ? total
                : std::clamp<std::int64_t>(std::llround(static_cast<double>(total) * done / all), first, total);
        ranges.push_back({first, end - first});
        first = end;
    }
    return ranges;
}

std::vector<Range> layer_ranges(const std::vector<std::int64_t>& layers, std::int64_t total, int shards) {
    const std::size_t groups = std::min(layers.size(), static_cast<std::size_t>(shards));
    const std::int64_t whole = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
    std::vector<Range> ranges;
    std::int64_t first = 0, done = 0;
    std::size_t layer = 0;
    for (const std::size_t end : group_ends(layers, groups)) {
        for (; layer < end; ++layer) done += layers[layer];
        const std::int64_t last = scaled(total, done, whole);
        ranges.push_back({first, last - first});
        first = last;
    }
    ranges.resize(static_cast<std::size_t>(shards), {total, 0});
    return ranges;
}

Shards make_shards(const Scenario& scenario, std::int64_t parameters) {
    if (scenario.topology != "sharded") return {};
    const std::int64_t total = parameters > 0 ? parameters : scenario.cost.push_bytes;
    const int count = scenario.shards.count;
    return {scenario.lambda(), scenario.shards.by_layers && !scenario.layers.empty()
                                   ? layer_ranges(scenario.layers, total, count)
                                   : even_ranges(total, count)};
}

CostSpec cost_of(const Scenario& scenario, const Shards& shards, int shard) {
    CostSpec cost = scenario.cost;
    if (!shards.any()) return cost;
    cost.push_bytes = shards.bytes(cost.push_bytes, shards.range(shard));
    cost.pull_bytes = shards.bytes(cost.pull_bytes, shards.range(shard));
    return cost;
}

}  // namespace rubato
