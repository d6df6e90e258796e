// Noise of compute times, for a driver that asks for one factor after another.
#pragma once

#include "core/scenario.hpp"
#include "learn/random.hpp"

#include <array>
#include <optional>
#include <vector>

namespace rubato::sim {

/// noise_factor (sim/cost.hpp) with the same values, for a worker's gradients in turn: computed four at a time.
class Noise {
public:
    /// The scenario must outlive it.
    explicit Noise(const Scenario& scenario);
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

    const Scenario& scenario_;
    std::optional<learn::Lognormal> lognormal_;  ///< none: no noise
    std::vector<Block> blocks_;                  ///< by role
};

}  // namespace rubato::sim
