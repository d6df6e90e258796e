// Exact counts of staleness values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace rubato::trace {

/// Counts of values 0, 1, 2, ... Values below `dense_limit` take eight bytes each up to the largest that was seen,
/// others a node of a map each: ten thousand workers, each with staleness near ten thousand, still fit into memory.
class Histogram {
public:
    explicit Histogram(std::int64_t dense_limit = 1 << 24) : dense_limit_(dense_limit) {}

    /// Negative values mean a wrong engine; they are left out.
    void add(std::int64_t value);
    std::int64_t total() const { return total_; }
    /// Largest value seen; -1 when there is none.
    std::int64_t max() const { return max_; }
    std::optional<double> mean() const;
    /// Nearest rank: the smallest value such that at least `percent` of all values are not greater.
    std::optional<std::int64_t> percentile(int percent) const;
    /// Element k counts the values k; its size is max() + 1.
    std::vector<std::int64_t> counts() const;

private:
    std::int64_t dense_limit_;
    std::int64_t total_ = 0, sum_ = 0, max_ = -1;
    std::vector<std::int64_t> dense_;
    std::map<std::int64_t, std::int64_t> sparse_;
};

}  // namespace rubato::trace
