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

double from_flops(const CostSpec& cost, const ComputeSite& site, double batch) {
    if (!(cost.flops_per_sample > 0))
        throw PlatformError(
            "the cost of a gradient is unknown: cost.flops_per_sample is missing, and the device gives no seconds; "
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
    seconds.value *= 1 + device.host_sharing * (site.workers - 1);
    return seconds;
}

}  // namespace rubato::sim
