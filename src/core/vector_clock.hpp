// The vector clock of an update: which versions its gradients were computed on.
#pragma once

#include "core/types.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rubato {

/// Sorted (version, count) pairs, so that a relay can merge them and the root still knows them exactly.
class VectorClock {
public:
    void add(Version version, std::int32_t count = 1) {
        auto at = std::lower_bound(pairs_.begin(), pairs_.end(), version,
                                   [](const auto& pair, Version value) { return pair.first < value; });
        if (at != pairs_.end() && at->first == version)
            at->second += count;
        else
            pairs_.insert(at, {version, count});
    }

    /// Mean staleness of the update that replaces `replaced`: replaced - mean(versions) (Gupta et al. 2015, equation 2,
    /// where the update makes version i = replaced + 1). 0 for an empty clock.
    double mean_staleness(Version replaced) const {
        std::int64_t staleness = 0, count = 0;
        for (const auto& [version, times] : pairs_) {
            staleness += (replaced - version) * times;
            count += times;
        }
        return count == 0 ? 0.0 : static_cast<double>(staleness) / static_cast<double>(count);
    }

    void clear() { pairs_.clear(); }
    const std::vector<std::pair<Version, std::int32_t>>& pairs() const { return pairs_; }
    bool operator==(const VectorClock&) const = default;

private:
    std::vector<std::pair<Version, std::int32_t>> pairs_;
};

}  // namespace rubato
