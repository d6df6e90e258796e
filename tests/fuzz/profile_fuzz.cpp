// Profiles: whatever stands in one, it holds figures that a simulation can use and is written as it was read, or it is
// refused in one line.
#include "cli/calibrate/profile.hpp"
#include "fuzz/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

using namespace rubato;

namespace {

void check(const cli::DeviceProfile& device, std::size_t levels) {
    fuzz::demand(!device.batches.empty(), "a device has times");
    fuzz::demand(device.dispatch_s >= 0 && std::isfinite(device.dispatch_s), "times are at least zero and finite");
    for (const auto& [batch, times] : device.batches) {
        fuzz::demand(batch >= 1 && times.n >= 1, "sizes and counts are at least 1");
        fuzz::demand(times.mean > 0 && std::isfinite(times.mean), "means are above zero and finite");
        const auto& values = times.quantiles;
        fuzz::demand(values.empty() || values.size() == levels, "there is a quantile for each level");
        fuzz::demand(std::is_sorted(values.begin(), values.end()), "quantiles ascend");
    }
    for (const auto& [workers, factor] : device.host_sharing)
        fuzz::demand(workers >= 1 && factor > 0 && std::isfinite(factor), "factors are above zero and finite");
}

void check(const cli::Profile& profile) {
    for (const auto& [name, device] : profile.compute) check(device, profile.levels.size());
    if (profile.network) {
        const double bandwidth = profile.network->bandwidth;
        fuzz::demand(bandwidth > 0 && std::isfinite(bandwidth), "bandwidths are above zero and finite");
    }
    const std::string text = cli::to_json(cli::to_node(profile));
    const cli::Profile again = cli::parse_profile(text, "again.json");
    fuzz::demand(cli::to_json(cli::to_node(again)) == text, "a profile is written as it was read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        check(cli::parse_profile({reinterpret_cast<const char*>(data), size}, "p.json"));
    } catch (const cli::InputError& error) {
        fuzz::demand_one_line(error.what());
    }
    return 0;
}
