// Exact counts of staleness values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rubato::trace {

/// Counts of values 0, 1, 2, ..., eight bytes each up to the largest that was seen. CoarseHistogram takes less.
class Histogram {
public:
    /// Negative values mean a wrong engine; they are left out.
    void add(std::int64_t value, std::int64_t times = 1);
    std::int64_t total() const { return total_; }
    /// Largest value seen; -1 when there is none.
    std::int64_t max() const { return max_; }
    std::optional<double> mean() const;
    /// Nearest rank: the smallest value such that at least `percent` of all values are not greater.
    std::optional<std::int64_t> percentile(int percent) const;
    /// Element k counts the values k; its size is max() + 1.
    const std::vector<std::int64_t>& counts() const { return counts_; }

    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("total", self.total_);
        field("sum", self.sum_);
        field("max", self.max_);
        field("counts", self.counts_);
    }

private:
    std::int64_t total_ = 0, sum_ = 0, max_ = -1;
    std::vector<std::int64_t> counts_;
};

}  // namespace rubato::trace
