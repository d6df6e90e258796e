// Seconds of one gradient, as the simulated machine is charged for it.
#pragma once

#include "core/scenario.hpp"

namespace rubato::sim {

/// Where a gradient is computed.
struct ComputeSite {
    double speed = 0;  ///< flop/s of one core
    int cores = 1;
    int workers = 1;  ///< on the host, the one that computes included
};

struct Seconds {
    double value = 0;
    bool extrapolated = false;          ///< the batch lies outside the device's table
    bool sharing_extrapolated = false;  ///< the workers of the host lie outside its table
};

/// Without noise: the device's figure for the batch, times 1 + host_sharing * (workers - 1), or the factor that its
/// table of sharing gives (interpolated; beyond its ends along the outermost pair, never below the smallest one; a
/// table of one entry gives that one throughout). A table of seconds is interpolated linearly between its entries, and
/// goes on along its outermost pair beyond them (downwards at least in proportion to the batch; a table of one entry is
/// proportional throughout). Kind flops takes flops_per_sample * batch / speed on a core of the worker's own; more
/// workers than cores share them evenly. Throws PlatformError where a figure is missing.
Seconds gradient_seconds(const DeviceSpec& device, const CostSpec& cost, const ComputeSite& site, int batch);

/// The factor on a gradient's time at the point u of its distribution, 0 < u < 1: the quantiles, linear between levels
/// and between batch sizes (those of the nearest one beyond them). Its mean over u is 1. The device has shapes.
double shape_factor(const DeviceSpec& device, double batch, double u);
/// A figure of each shape of the device, as shape_factor goes between them.
double between_shapes(const DeviceSpec& device, double batch, const std::vector<double>& figures);

/// Factor of the compute time of a worker's gradient number `worker_seq`: mean 1, keyed by seeds.timing, role and
/// number, so that it depends on neither the order of events nor the backend. Lognormal; normal, cut below at 0.05; or
/// 1 - cv plus an exponential time of mean cv. 1 where cluster.noise is 0.
double noise_factor(const Scenario& scenario, RoleId role, std::int64_t worker_seq);

}  // namespace rubato::sim
