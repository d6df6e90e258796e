// Learning rates and momentum as functions of how far a run is: by samples, whatever the number of workers.
#pragma once

#include "core/scenario.hpp"

namespace rubato {

/// The rate after `epochs` (samples applied / N), before any staleness rule: the drops of the schedule or its cosine
/// (Loshchilov and Hutter 2017, equation 5, without restarts), times the warm-up (Goyal et al. 2017, section 2.2).
inline double scheduled_rate(const OptimizerSpec& optimizer, double epochs);
/// The same from another rate than the configured one.
double scheduled_rate(const OptimizerSpec& optimizer, double rate, double epochs);

double scheduled_rate(const OptimizerSpec& optimizer, double epochs) {
    return scheduled_rate(optimizer, optimizer.learning_rate, epochs);
}

/// What is left of a momentum when the staleness of the gradients is counted as a part of it.
///
/// A gradient of staleness s enters the weights s updates late, and momentum mu spreads each over the updates to come,
/// on average mu / (1 - mu) late. In a row the two add up: asynchrony is a momentum by itself (Mitliagkas et al. 2016:
/// 1 - 1/lambda, where the staleness is geometric with mean lambda - 1). What is left, mu', makes the sum what the
/// configured momentum alone would be, or is 0 where staleness is more than that:
///
///     mu' / (1 - mu') = max(0, mu / (1 - mu) - staleness)
///
/// gain: (1 - mu') / (1 - mu), a factor on the rate by which a constant gradient moves the weights as far as ever.
struct DecoupledMomentum {
    double momentum = 0;
    double gain = 1;
};
/// momentum: in [0, 1). staleness: mean, at least 0.
DecoupledMomentum decoupled_momentum(double momentum, double staleness);

}  // namespace rubato
