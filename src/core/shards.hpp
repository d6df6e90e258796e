// Sharded servers (topology "sharded"; Dean et al. 2012, Downpour SGD): each owns a contiguous range of the parameters,
// with a version, a policy and an optimizer's state of its own. Shard 0 is role 0, shard i > 0 is role lambda + i.
#pragma once

#include "core/scenario.hpp"

#include <vector>

namespace rubato {

/// Elements [first, first + count) of every vector.
struct Range {
    std::int64_t first = 0, count = 0;
    std::int64_t end() const { return first + count; }
    bool operator==(const Range&) const = default;
};

/// Of a message of so many bytes about `total` elements, what a part of them takes; parts of a whole add up to the
/// whole.
std::int64_t part_bytes(std::int64_t message, const Range& part, std::int64_t total);

class Shards {
public:
    /// One server, which owns all: there are no shards to speak of.
    Shards() = default;
    /// ranges: one after the other, from 0 on; those without elements come last.
    Shards(int lambda, std::vector<Range> ranges) : lambda_(lambda), ranges_(std::move(ranges)) {}

    bool any() const { return !ranges_.empty(); }
    int count() const { return any() ? static_cast<int>(ranges_.size()) : 1; }
    /// Those that own something.
    int used() const;
    const Range& range(int shard) const { return ranges_[static_cast<std::size_t>(shard)]; }
    std::int64_t total() const { return any() ? ranges_.back().end() : 0; }
    RoleId role(int shard) const { return shard == 0 ? 0 : lambda_ + shard; }
    int shard_of(RoleId role) const { return role == 0 ? 0 : role - lambda_; }
    std::int64_t bytes(std::int64_t message, const Range& part) const { return part_bytes(message, part, total()); }
    bool operator==(const Shards&) const = default;

private:
    int lambda_ = 0;
    std::vector<Range> ranges_;  ///< empty: one server
};

/// As even as can be; the first ones have one element more.
std::vector<Range> even_ranges(std::int64_t total, int shards);

/// In these proportions, none of which is 0, to the nearest element.
std::vector<Range> proportional_ranges(const std::vector<double>& sizes, std::int64_t total);

/// Whole layers, so that the largest shard is as small as can be, and among those ways the one with the smallest sum of
/// squares. Every shard has a layer as long as there are enough. Layers are in any unit: they are scaled to `total`.
std::vector<Range> layer_ranges(const std::vector<std::int64_t>& layers, std::int64_t total, int shards);

/// Those of the scenario; none where its topology is another one. parameters: elements of the weights; 0 in timing-only
/// runs without a model, where a range counts bytes of a gradient message.
Shards make_shards(const Scenario& scenario, std::int64_t parameters);

/// What messages about a shard's part cost; without shards those about the whole.
CostSpec cost_of(const Scenario& scenario, const Shards& shards, int shard);

}  // namespace rubato
