// Measuring until an estimate is stable, or until time is up.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

namespace rubato::cli {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The mean of values as they come, and how well it is known (Welford 1962).
class RunningMean {
public:
    void add(double value) {
        ++n_;
        const double off = value - mean_;
        mean_ += off / static_cast<double>(n_);
        squares_ += off * (value - mean_);
    }
    std::int64_t n() const { return n_; }
    double mean() const { return mean_; }
    /// Standard error of the mean over the mean. n at least 2.
    double relative_error() const {
        const auto n = static_cast<double>(n_);
        return std::sqrt(std::max(0.0, squares_) / (n - 1) / n) / mean_;
    }
    /// Known to 1 %, from enough values for a distribution.
    bool stable() const { return n_ >= 200 && relative_error() < 0.01; }

private:
    std::int64_t n_ = 0;
    double mean_ = 0, squares_ = 0;
};

}  // namespace rubato::cli
