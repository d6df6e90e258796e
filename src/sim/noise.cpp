#include "sim/noise.hpp"

#include "sim/cost.hpp"

namespace rubato::sim {

double noise_factor(const Scenario& scenario, RoleId role, std::int64_t worker_seq) {
    const double cv = scenario.cluster.noise.lognormal_cv;
    if (cv == 0) return 1;
    learn::Stream stream(scenario.seeds.timing, static_cast<std::uint32_t>(role), learn::Purpose::noise_compute,
                         static_cast<std::uint64_t>(worker_seq));
    return stream.lognormal(cv);
}

Noise::Noise(const Scenario& scenario) : scenario_(scenario) {
    const double cv = scenario.cluster.noise.lognormal_cv;
    if (cv == 0) return;
    lognormal_.emplace(cv);
    blocks_.resize(static_cast<std::size_t>(scenario.lambda()) + 1);
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
