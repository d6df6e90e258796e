// Counts of staleness values in little memory, for a distribution a worker.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace rubato::trace {

/// Values below 256 are counted one by one, larger ones in classes 1/128 of their size wide: ten thousand workers, each
/// with staleness near ten thousand, take a few hundred bytes each. Sum and largest value are exact.
class CoarseHistogram {
public:
    /// Negative values mean a wrong engine; they are left out.
    void add(std::int64_t value, std::int32_t times = 1) {
        if (value < 0) return;
        total_ += times;
        sum_ += value * times;
        max_ = std::max(max_, value);
        const std::int32_t index = class_of(value);
        if (counts_.empty()) first_ = index;
        if (index < first_) {
            counts_.insert(counts_.begin(), static_cast<std::size_t>(first_ - index), 0);
            first_ = index;
        }
        const auto at = static_cast<std::size_t>(index - first_);
        if (at >= counts_.size()) counts_.resize(at + 1);
        counts_[at] += static_cast<std::uint32_t>(times);
    }

    /// Fetches the memory that add(value) will write.
    void prefetch(std::int64_t value) const {
        if (value < 0 || counts_.empty()) return;
        const auto at = static_cast<std::size_t>(class_of(value) - first_);
        if (at < counts_.size()) __builtin_prefetch(&counts_[at], 1);
    }

    std::optional<double> mean() const {
        if (total_ == 0) return std::nullopt;
        return static_cast<double>(sum_) / static_cast<double>(total_);
    }

    /// Nearest rank: the smallest value such that at least `percent` of all values are not greater. Exact below 256;
    /// beyond, at most 1/128 too large.
    std::optional<std::int64_t> percentile(int percent) const {
        if (total_ == 0) return std::nullopt;
        const std::int64_t rank = std::max<std::int64_t>(1, (total_ * percent + 99) / 100);
        std::int64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (seen >= rank) return std::min(max_, last_of(first_ + static_cast<std::int32_t>(i)));
        }
        return max_;
    }

    template <class Self, class F>
    static void each(Self& self, F&& field) {
        field("total", self.total_);
        field("sum", self.sum_);
        field("max", self.max_);
        field("first", self.first_);
        field("counts", self.counts_);
    }

private:
    static constexpr int exact_bits = 8;  ///< values below 2^exact_bits have a class of their own

    /// 128 classes for each power of two from 256 on.
    static std::int32_t class_of(std::int64_t value) {
        const int shift = std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value))) - exact_bits);
        return static_cast<std::int32_t>((shift << (exact_bits - 1)) + (value >> shift));
    }
    /// Largest value of a class.
    static std::int64_t last_of(std::int32_t index) {
        const int shift = std::max(0, (index >> (exact_bits - 1)) - 1);
        return ((static_cast<std::int64_t>(index - (shift << (exact_bits - 1))) + 1) << shift) - 1;
    }

    std::int64_t total_ = 0, sum_ = 0, max_ = -1;
    std::int32_t first_ = 0;  ///< class of counts_[0]
    std::vector<std::uint32_t> counts_;
};

}  // namespace rubato::trace
