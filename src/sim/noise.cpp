#include "learn/random.hpp"
#include "sim/cost.hpp"

namespace rubato::sim {

double noise_factor(const Scenario& scenario, RoleId role, std::int64_t worker_seq) {
    const double cv = scenario.cluster.noise.lognormal_cv;
    if (cv == 0) return 1;
    learn::Stream stream(scenario.seeds.timing, static_cast<std::uint32_t>(role), learn::Purpose::noise_compute,
                         static_cast<std::uint64_t>(worker_seq));
    return stream.lognormal(cv);
}

}  // namespace rubato::sim
