#include "sim/cost.hpp"

#include "sim/network.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::sim {

namespace {

Seconds from_table(const std::vector<std::pair<double, double>>& table, double batch) {
    if (table.empty()) throw PlatformError("a device's table of seconds is empty; expected batch sizes with seconds");
    const auto& [first_batch, first_seconds] = table.front();
    const bool outside = batch < first_batch || batch > table.back().first;
    const double proportional = first_seconds * batch / first_batch;
    if (table.size() == 1) return {proportional, outside};
    // The pair around the batch, or the outermost one.
    auto upper = std::lower_bound(table.begin() + 1, table.end() - 1, batch,
                                  [](const auto& entry, double value) { return entry.first < value; });
    const auto& [b1, s1] = *upper;
    const auto& [b0, s0] = *(upper - 1);
    const double linear = s0 + (s1 - s0) * (batch - b0) / (b1 - b0);
    return {batch < first_batch ? std::max(linear, proportional) : linear, outside};
}

double sharing_factor(const DeviceSpec& device, int workers, bool& outside) {
    const auto& table = device.sharing;
    if (table.empty()) return 1 + device.host_sharing * (workers - 1);
    outside = workers < table.front().first || workers > table.back().first;
    if (table.size() == 1) return table.front().second;
    const auto upper = std::lower_bound(table.begin() + 1, table.end() - 1, static_cast<double>(workers),
                                        [](const auto& entry, double value) { return entry.first < value; });
    const auto& [w1, f1] = *upper;
    const auto& [w0, f0] = *(upper - 1);
    const double linear = f0 + (f1 - f0) * (workers - w0) / (w1 - w0);
    return outside ? std::max(linear, std::min(table.front().second, table.back().second)) : linear;
}

double quantile(const std::vector<double>& levels, const std::vector<double>& values, double u) {
    const auto upper = std::upper_bound(levels.begin() + 1, levels.end() - 1, u);
    const auto i = static_cast<std::size_t>(upper - levels.begin());
    const double part = (u - levels[i - 1]) / (levels[i] - levels[i - 1]);
    return values[i - 1] + (values[i] - values[i - 1]) * part;
}

/// Shapes on either side of a batch size, the same one beyond their ends.
struct Neighbours {
    std::size_t below = 0, above = 0;
    double part = 0;  ///< of the way from below to above
};

Neighbours neighbours(const DeviceSpec& device, double batch) {
    const auto& shapes = device.shapes;
    const std::size_t last = shapes.size() - 1;
    if (last == 0 || batch <= shapes.front().batch) return {0, 0, 0};
    if (batch >= shapes.back().batch) return {last, last, 0};
    const auto upper = std::lower_bound(shapes.begin() + 1, shapes.end() - 1, batch,
                                        [](const TimeShape& shape, double value) { return shape.batch < value; });
    const auto above = static_cast<std::size_t>(upper - shapes.begin());
    const double below_batch = shapes[above - 1].batch;
    return {above - 1, above, (batch - below_batch) / (upper->batch - below_batch)};
}

double from_flops(const CostSpec& cost, const ComputeSite& site, double batch) {
    if (!(cost.flops_per_sample > 0))
        throw PlatformError(
            "cost: what a gradient costs is unknown: cost.flops_per_sample is missing, and the device gives no "
            "seconds; "
            "expected one of the two");
    const double shared = std::max(1.0, static_cast<double>(site.workers) / site.cores);
    return cost.flops_per_sample * batch / site.speed * shared;
}

}  // namespace

Seconds gradient_seconds(const DeviceSpec& device, const CostSpec& cost, const ComputeSite& site, int batch) {
    const double size = batch;
    Seconds seconds;
    switch (device.kind) {
        case DeviceSpec::Kind::flops: seconds.value = from_flops(cost, site, size); break;
        case DeviceSpec::Kind::table: seconds = from_table(device.table, size); break;
        case DeviceSpec::Kind::power: seconds.value = device.c * std::pow(size / device.b0, device.p); break;
        case DeviceSpec::Kind::affine: seconds.value = device.a + device.b * size; break;
    }
    seconds.value *= sharing_factor(device, site.workers, seconds.sharing_extrapolated);
    return seconds;
}

double shape_factor(const DeviceSpec& device, double batch, double u) {
    const Neighbours at = neighbours(device, batch);
    const double below = quantile(device.levels, device.shapes[at.below].factors, u);
    if (at.above == at.below) return below;
    return (1 - at.part) * below + at.part * quantile(device.levels, device.shapes[at.above].factors, u);
}

double between_shapes(const DeviceSpec& device, double batch, const std::vector<double>& figures) {
    const Neighbours at = neighbours(device, batch);
    return (1 - at.part) * figures[at.below] + at.part * figures[at.above];
}

}  // namespace rubato::sim
