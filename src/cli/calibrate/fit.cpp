#include "cli/calibrate/fit.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// Minimizes sum of weight * (a / t + b * x / t - 1)^2 over a, b >= 0.
LineFit weighted(const std::vector<MessageTime>& points, const std::vector<double>& weights, double scale) {
    double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const double u = 1 / points[i].seconds, v = points[i].bytes / scale / points[i].seconds;
        aa += weights[i] * u * u;
        ab += weights[i] * u * v;
        bb += weights[i] * v * v;
        a1 += weights[i] * u;
        b1 += weights[i] * v;
    }
    LineFit fit;
    const double determinant = aa * bb - ab * ab;
    if (determinant > 1e-12 * aa * bb) {
        fit.fixed_s = (a1 * bb - b1 * ab) / determinant;
        fit.per_byte_s = (b1 * aa - a1 * ab) / determinant;
    }
    // At the edge of what is allowed the other parameter is fitted alone.
    if (determinant <= 1e-12 * aa * bb || fit.fixed_s < 0) fit = {0, b1 / bb, 0};
    if (fit.per_byte_s < 0) fit = {a1 / aa, 0, 0};
    fit.per_byte_s /= scale;
    return fit;
}

double relative_error(const LineFit& fit, const MessageTime& point) {
    return (fit.fixed_s + fit.per_byte_s * point.bytes) / point.seconds - 1;
}

}  // namespace

LineFit fit_line(const std::vector<MessageTime>& points) {
    double scale = 0;
    for (const auto& point : points) scale = std::max(scale, point.bytes);
    std::vector<double> weights(points.size(), 1);
    LineFit fit;
    for (int iteration = 0; iteration < 50; ++iteration) {
        fit = weighted(points, weights, scale);
        std::vector<double> errors;
        for (const auto& point : points) errors.push_back(std::abs(relative_error(fit, point)));
        // 1.345 standard deviations, estimated by the median absolute error. No network or memory is a line to better
        // than some per cent, so that deviations of that kind are no outliers.
        constexpr double least_deviation = 0.1;
        const double bend = 1.345 * std::max(least_deviation, median(errors) / 0.6745);
        for (std::size_t i = 0; i < points.size(); ++i) weights[i] = std::min(1.0, bend / std::max(errors[i], 1e-300));
    }
    for (const auto& point : points)
        fit.largest_error = std::max(fit.largest_error, std::abs(relative_error(fit, point)));
    return fit;
}

std::vector<MessageTime> medians_by_size(std::vector<std::pair<double, double>> times) {
    std::sort(times.begin(), times.end());
    std::vector<MessageTime> result;
    for (std::size_t begin = 0; begin < times.size();) {
        std::vector<double> seconds;
        std::size_t end = begin;
        for (; end < times.size() && times[end].first == times[begin].first; ++end)
            seconds.push_back(times[end].second);
        result.push_back({times[begin].first, median(seconds), static_cast<std::int64_t>(seconds.size())});
        begin = end;
    }
    return result;
}

}  // namespace rubato::cli
