#include "trace/histogram.hpp"

#include <algorithm>

namespace rubato::trace {

void Histogram::add(std::int64_t value, std::int64_t times) {
    if (value < 0) return;
    total_ += times;
    sum_ += value * times;
    max_ = std::max(max_, value);
    const auto index = static_cast<std::size_t>(value);
    if (index >= counts_.size()) counts_.resize(index + 1);
    counts_[index] += times;
}

std::optional<double> Histogram::mean() const {
    if (total_ == 0) return std::nullopt;
    return static_cast<double>(sum_) / static_cast<double>(total_);
}

std::optional<std::int64_t> Histogram::percentile(int percent) const {
    if (total_ == 0) return std::nullopt;
    const std::int64_t rank = std::max<std::int64_t>(1, (total_ * percent + 99) / 100);
    std::int64_t seen = 0;
    for (std::size_t value = 0; value < counts_.size(); ++value) {
        seen += counts_[value];
        if (seen >= rank) return static_cast<std::int64_t>(value);
    }
    return max_;
}

}  // namespace rubato::trace
