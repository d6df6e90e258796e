// Noise of compute times, for a driver that asks for one factor after another.
#pragma once

#include "learn/random.hpp"
#include "sim/placement.hpp"

#include <array>
#include <map>
#include <optional>
#include <vector>

namespace rubato::sim {

/// The gradient that a factor is for.
struct Draw {
    RoleId role = 0;
    std::int64_t worker_seq = 0;
    int batch = 0;  ///< samples
    Time begin_ns = 0;
    double mean_s = 0;  ///< seconds that it takes without noise
};

/// What is common to the workers of a host at a time: a standard normal process, the same in every backend. Draws at
/// whole multiples of time_s, weighted linearly between, and scaled to variance 1: at lag x * time_s the mean
/// correlation is common_correlation(x).
double common_normal(std::uint64_t seed, double time_s, HostId host, Time at_ns);
/// 1 at 0, 0.29 at 1, 0 from 2 on. x >= 0.
double common_correlation(double x);

/// What a worker's gradients take over their mean; where a worker has several devices, the largest of what theirs do.
/// Where the device has measured quantiles, a draw from them; otherwise noise_factor (sim/cost.hpp), with the same
/// values, computed four at a time. Either is keyed by seeds.timing, role and number. With cluster.noise.common the
/// normal score of the draw is sqrt(share) * (common_normal + shift) + sqrt(1 - share) * its own (a Gaussian copula,
/// Nelsen 2006, section 2.3). The shift makes up for the gradients that a slow moment holds fewer of, so that the
/// distribution of a worker's times, one after another, stays what it is: a moment holds gradients in inverse
/// proportion to their length if it lasts long, and as they come if it does not. Roles may be asked for from several
/// threads, each role from one.
class Noise {
public:
    /// Both must outlive it. placement null: no device has quantiles, and there is no common part.
    explicit Noise(const Scenario& scenario, const Placement* placement = nullptr);
    double factor(const Draw& draw) { return devices_.empty() ? of_one(draw) : of_slowest(draw); }
    /// Fetches what factor of the role will read into the cache.
    void fetch(RoleId role) const {
        if (lognormal_) __builtin_prefetch(&blocks_[static_cast<std::size_t>(role)]);
    }

private:
    struct Block {
        std::int64_t first = -1;
        std::array<double, 4> factors{};
    };

    double of_one(const Draw& draw) {
        if (common_) return correlated(draw);
        if (measured_) {
            const DeviceSpec* device = placement_->device_of_role[static_cast<std::size_t>(draw.role)];
            if (!device->shapes.empty()) return drawn(*device, draw);
        }
        return plain(draw.role, draw.worker_seq);
    }
    double of_slowest(const Draw& draw);
    double plain(RoleId role, std::int64_t worker_seq);
    double drawn(const DeviceSpec& device, const Draw& draw) const;
    double correlated(const Draw& draw) const;
    double shift(double moment, double mean_s) const;

    const Scenario& scenario_;
    const Placement* placement_;
    std::vector<const WorkerGroup*> devices_;    ///< by role, whose devices they are; empty: each worker has one
    bool measured_ = false;                      ///< some device has quantiles
    bool common_ = false;                        ///< part of it is common to a host
    double moment_ = 0;                          ///< of noise that is not lognormal, as below
    std::optional<learn::Lognormal> lognormal_;  ///< none: no noise, or another kind
    std::vector<Block> blocks_;                  ///< by role
    /// Mean of the normal score times the factor, for each shape of a device.
    std::map<const DeviceSpec*, std::vector<double>> moments_;
};

}  // namespace rubato::sim
