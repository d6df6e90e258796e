#include "cli/sweep/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace rubato::cli {
namespace {

/// Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by the method of Lentz.
double beta_fraction(double a, double b, double x) {
    constexpr double tiny = 1e-300;
    const auto away_from_zero = [](double value) { return std::fabs(value) < tiny ? tiny : value; };
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), result = d;
    for (int m = 1; m <= 1000; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        result *= d * c;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        result *= d * c;
        if (std::fabs(d * c - 1) < 1e-15) break;
    }
    return result;
}

/// Regularized incomplete beta function.
double incomplete_beta(double a, double b, double x) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    const double front =
        std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
    // The fraction converges fast on this side only.
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/// P(T > t) for t >= 0.
double upper_tail(double t, double degrees) {
    return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;
}

}  // namespace

double student_quantile(double probability, double degrees) {
    const double tail = 1 - probability;
    double low = 0, high = 1;
    while (upper_tail(high, degrees) > tail) high *= 2;
    // Bisection to the last bit of a double.
    for (;;) {
        const double middle = (low + high) / 2;
        if (middle <= low || middle >= high) return middle;
        (upper_tail(middle, degrees) > tail ? low : high) = middle;
    }
}

Statistics statistics(std::vector<double> values) {
    Statistics result;
    const std::size_t n = values.size();
    result.n = static_cast<int>(n);
    std::sort(values.begin(), values.end());
    // Sorted, the sum does not depend on the order in which runs came to their end.
    result.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(n);
    result.median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
    result.std = result.ci95 = std::numeric_limits<double>::quiet_NaN();
    const bool equal = values.front() == values.back();
    if (equal) result.mean = values.front();  // a sum of equal values is rounded, and so would be their deviation
    if (n < 2) return result;
    if (equal) {
        result.std = result.ci95 = 0;
        return result;
    }
    double squares = 0;
    for (const double value : values) squares += (value - result.mean) * (value - result.mean);
    const auto degrees = static_cast<double>(n - 1);
    result.std = std::sqrt(squares / degrees);
    result.ci95 = student_quantile(0.975, degrees) * result.std / std::sqrt(static_cast<double>(n));
    return result;
}

}  // namespace rubato::cli
