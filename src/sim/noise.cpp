#include "sim/noise.hpp"

#include "sim/cost.hpp"

#include <algorithm>

namespace rubato::sim {

double noise_factor(const Scenario& scenario, RoleId role, std::int64_t worker_seq) {
    const double cv = scenario.cluster.noise.lognormal_cv;
    if (cv == 0) return 1;
    learn::Stream stream(scenario.seeds.timing, static_cast<std::uint32_t>(role), learn::Purpose::noise_compute,
                         static_cast<std::uint64_t>(worker_seq));
    return stream.lognormal(cv);
}

Noise::Noise(const Scenario& scenario, std::span<const DeviceSpec* const> device_of_role)
    : scenario_(scenario), device_of_role_(device_of_role) {
    measured_ = std::any_of(device_of_role.begin(), device_of_role.end(),
                            [](const DeviceSpec* device) { return device != nullptr && !device->shapes.empty(); });
    const double cv = scenario.cluster.noise.lognormal_cv;
    if (cv == 0) return;
    lognormal_.emplace(cv);
    blocks_.resize(static_cast<std::size_t>(scenario.lambda()) + 1);
}

double Noise::drawn(const DeviceSpec& device, RoleId role, std::int64_t worker_seq, int batch) const {
    learn::Stream stream(scenario_.seeds.timing, static_cast<std::uint32_t>(role), learn::Purpose::noise_compute,
                         static_cast<std::uint64_t>(worker_seq));
    return shape_factor(device, batch, stream.uniform());
}

double Noise::factor(RoleId role, std::int64_t worker_seq) {
    if (!lognormal_) return 1;
    auto& block = blocks_[static_cast<std::size_t>(role)];
    if (block.first != worker_seq / 4 * 4) {
        block.first = worker_seq / 4 * 4;
        block.factors = lognormal_->four(scenario_.seeds.timing, static_cast<std::uint32_t>(role),
                                         learn::Purpose::noise_compute, static_cast<std::uint64_t>(block.first));
    }
    return block.factors[static_cast<std::size_t>(worker_seq % 4)];
}

}  // namespace rubato::sim
