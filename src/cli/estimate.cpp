#include "cli/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

// Measured means of the rows that a run writes, bytes.
constexpr double gradient_row = 150;
constexpr double update_row = 85;
constexpr double timeline_row = 55;
constexpr double events_of_gradient = 1900;
constexpr double spans_of_gradient = 6;

double gradients_of_epochs(const Loaded& loaded, double epochs, std::int64_t slices) {
    const double whole = std::floor(epochs);
    const double rest = (epochs - whole) * static_cast<double>(loaded.samples);
    return whole * static_cast<double>(slices) + std::ceil(rest / loaded.scenario.workers.batch_size - 1e-9);
}

}  // namespace

int gradients_of_update(const Scenario& scenario) {
    if (scenario.protocol.name == "hardsync") return scenario.lambda();
    if (scenario.protocol.name == "async") return 1;
    return gradients_per_update(scenario.protocol, scenario.lambda());
}

Estimate estimate(const Loaded& loaded) {
    const Scenario& scenario = loaded.scenario;
    const std::int64_t batch = scenario.workers.batch_size;
    Estimate result;
    result.slices = (loaded.samples + batch - 1) / batch;
    result.last_slice = loaded.samples - (result.slices - 1) * batch;
    result.per_update = gradients_of_update(scenario);
    const StopSpec& stop = scenario.stop;
    const auto consider = [&](double gradients, const char* name) {
        if (result.gradients && *result.gradients <= gradients) return;
        result.gradients = gradients;
        result.limited_by = name;
    };
    if (stop.epochs) consider(gradients_of_epochs(loaded, *stop.epochs, result.slices), "epochs");
    if (stop.gradients) consider(static_cast<double>(*stop.gradients), "gradients");
    if (stop.updates) consider(static_cast<double>(*stop.updates) * result.per_update, "updates");
    if (!result.gradients) return result;
    const double gradients = *result.gradients;
    result.updates = std::ceil(gradients / result.per_update);
    // A push and a pull each; an inquiry and its answer where the protocol does not broadcast.
    const double weights = std::max(gradients, 1.0);
    result.messages = gradients + weights + (scenario.protocol.name == "hardsync" ? 0 : gradients);
    result.network_bytes = gradients * static_cast<double>(scenario.cost.push_bytes) +
                           weights * static_cast<double>(scenario.cost.pull_bytes);
    double disk = 4000;
    if (scenario.trace.gradients) disk += gradients / scenario.trace.every * gradient_row;
    if (scenario.trace.updates) disk += *result.updates * update_row;
    if (scenario.trace.timeline) disk += gradients * spans_of_gradient * timeline_row;
    if (scenario.trace.events) disk += gradients * events_of_gradient;
    result.disk_bytes = disk;
    return result;
}

std::string bytes_text(double bytes) {
    const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    int unit = 0;
    for (; bytes >= 1000 && unit < 6; ++unit) bytes /= 1000;
    return fmt::format("{:.4g} {}", bytes, units[unit]);
}

std::string seconds_text(double seconds) {
    if (seconds <= 0) return "0 s";
    if (seconds < 1e-3) return fmt::format("{:.4g} us", seconds * 1e6);
    if (seconds < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
    if (seconds < 7200) return fmt::format("{:.4g} s", seconds);
    return seconds < 172800 ? fmt::format("{:.4g} h", seconds / 3600) : fmt::format("{:.4g} d", seconds / 86400);
}

std::string count_text(double count) {
    std::string digits = fmt::format("{:.0f}", count);
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
        digits.insert(static_cast<std::size_t>(at), ",");
    }
    return digits;
}

}  // namespace rubato::cli
