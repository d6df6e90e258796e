// Noise of compute times, for a driver that asks for one factor after another.
#pragma once

#include "core/scenario.hpp"
#include "learn/random.hpp"

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace rubato::sim {

/// What a worker's gradients take over their mean, for one after another. Where the device has measured quantiles, a
/// draw from them; otherwise noise_factor (sim/cost.hpp), with the same values, computed four at a time. Either is
/// keyed by seeds.timing, role and number.
class Noise {
public:
    /// device_of_role: null for roles without one, empty where no device has quantiles. Both must outlive it.
    explicit Noise(const Scenario& scenario, std::span<const DeviceSpec* const> device_of_role = {});
    double factor(RoleId role, std::int64_t worker_seq, int batch) {
        if (measured_) {
            const DeviceSpec* device = device_of_role_[static_cast<std::size_t>(role)];
            if (!device->shapes.empty()) return drawn(*device, role, worker_seq, batch);
        }
        return factor(role, worker_seq);
    }
    /// Without regard to devices.
    double factor(RoleId role, std::int64_t worker_seq);
    /// Fetches what factor(role, ...) will read into the cache.
    void fetch(RoleId role) const {
        if (lognormal_) __builtin_prefetch(&blocks_[static_cast<std::size_t>(role)]);
    }

private:
    struct Block {
        std::int64_t first = -1;
        std::array<double, 4> factors{};
    };

    double drawn(const DeviceSpec& device, RoleId role, std::int64_t worker_seq, int batch) const;

    const Scenario& scenario_;
    std::span<const DeviceSpec* const> device_of_role_;
    bool measured_ = false;                      ///< some device has quantiles
    std::optional<learn::Lognormal> lognormal_;  ///< none: no noise
    std::vector<Block> blocks_;                  ///< by role
};

}  // namespace rubato::sim
