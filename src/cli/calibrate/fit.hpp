// Seconds as a line over bytes.
#pragma once

#include "cli/calibrate/profile.hpp"

#include <utility>
#include <vector>

namespace rubato::cli {

/// seconds = fixed_s + per_byte_s * bytes, neither below 0.
struct LineFit {
    double fixed_s = 0, per_byte_s = 0;
    double largest_error = 0;  ///< relative, over the points
};

/// Least squares of the relative error, iterated with Huber's weights (Huber 1964), so that a small message counts as
/// much as a large one, and an outlier little. Points of one size alone give no fixed part: their time is all
/// proportional. points: at least one, seconds above 0, some bytes above 0.
LineFit fit_line(const std::vector<MessageTime>& points);

/// The median time of each size, ascending. times: (bytes, seconds).
std::vector<MessageTime> medians_by_size(std::vector<std::pair<double, double>> times);

}  // namespace rubato::cli
