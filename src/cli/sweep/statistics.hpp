// Statistics over the seeds of a setting.
#pragma once

#include <vector>

namespace rubato::cli {

struct Statistics {
    int n = 0;
    double mean = 0;
    double median = 0;
    double std = 0;   ///< of the sample, n - 1 in the denominator; NaN for n < 2
    double ci95 = 0;  ///< half the width of the 95 % confidence interval of the mean (Student t); NaN for n < 2
};

/// Of at least one value.
Statistics statistics(std::vector<double> values);

/// t with P(T <= t) = probability for Student's t with so many degrees of freedom (at least 1); probability in (0.5,
/// 1).
double student_quantile(double probability, double degrees);

}  // namespace rubato::cli
