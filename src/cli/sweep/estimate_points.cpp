#include "cli/sweep/estimate_points.hpp"

#include "cli/estimate.hpp"

#include <algorithm>

namespace rubato::cli {

SweepEstimate estimate_points(const Plan& plan, Resolver& resolver) {
    constexpr std::size_t sample_max = 200;
    constexpr double row_bytes = 650;       // measured
    constexpr double begin_seconds = 2e-3;  // of a run: a process, the platform, its rows
    const SweepFile& sweep = *plan.sweep;
    SweepEstimate result;
    const std::size_t count = plan.settings.size();
    const std::size_t step = std::max<std::size_t>(1, count / sample_max);
    double seconds = 0, bytes = 0;
    std::size_t sampled = 0;
    for (std::size_t i = 0; i < count; i += step, ++sampled) {
        const PlannedSetting& setting = plan.settings[i];
        Loaded loaded = resolver.at({setting.setting, plan.choices[setting.first].choice}).loaded;
        loaded.scenario.pool_threads = 1;
        const Estimate run = estimate(loaded);
        result.partly |= !run.gradients;
        const double runs = static_cast<double>(sweep.seeds.size()) +
                            (sweep.tuning ? setting.count * static_cast<double>(sweep.tuning->seeds.size()) : 0);
        seconds += runs * (begin_seconds + wall_seconds(loaded, run));
        bytes += runs * run.disk_bytes.value_or(0);
    }
    const double scale = static_cast<double>(count) / static_cast<double>(sampled);
    result.seconds = seconds * scale;
    result.kept_bytes = bytes * scale;
    result.table_bytes = static_cast<double>(plan.report_points() + plan.tune_points()) * row_bytes;
    return result;
}

}  // namespace rubato::cli
