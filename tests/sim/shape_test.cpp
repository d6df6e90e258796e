// Measured scatter of compute times, and the effect of workers that share a host.
#include "sim/cost.hpp"
#include "sim/noise.hpp"
#include "sim/placement.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace rubato;
using doctest::Approx;

namespace {

/// Uniform from 0.5 to 1.5 at batch size 10; two flat halves with a jump, 0.25 and 1.75, at batch size 30.
DeviceSpec scattered() {
    DeviceSpec device;
    device.kind = DeviceSpec::Kind::table;
    device.table = {{10, 0.1}, {30, 0.3}};
    device.levels = {0, 0.5, 0.500001, 1};
    device.shapes = {{10, {0.5, 1, 1.000001, 1.5}}, {30, {0.25, 0.25, 1.75, 1.75}}};
    return device;
}

Scenario scenario_with(const DeviceSpec& device) {
    Scenario scenario;
    scenario.workers.groups = {{4, "default", 2}};
    scenario.workers.batch_size = 10;
    scenario.cluster.devices["default"] = device;
    return scenario;
}

}  // namespace

TEST_CASE("a shape is read between its levels and its batch sizes, and holds beyond them") {
    const DeviceSpec device = scattered();
    CHECK(sim::shape_factor(device, 10, 0.25) == Approx(0.75));
    CHECK(sim::shape_factor(device, 10, 0.9) == Approx(1.4));
    CHECK(sim::shape_factor(device, 30, 0.25) == Approx(0.25));
    CHECK(sim::shape_factor(device, 20, 0.25) == Approx(0.5));
    CHECK(sim::shape_factor(device, 15, 0.25) == Approx(0.75 * 0.75 + 0.25 * 0.25));
    CHECK(sim::shape_factor(device, 1, 0.25) == Approx(0.75));
    CHECK(sim::shape_factor(device, 1000, 0.75) == Approx(1.75));
}

TEST_CASE("factors follow the quantiles, with mean 1, and depend on worker and number alone") {
    const DeviceSpec device = scattered();
    Scenario scenario = scenario_with(device);
    scenario.cluster.noise.cv = 5;  // which measured scatter replaces
    sim::Placement placement;
    placement.device_of_role = {nullptr, &device, &device};
    sim::Noise noise(scenario, &placement);
    std::vector<double> factors;
    for (int i = 0; i < 20000; ++i) factors.push_back(noise.factor({1 + i % 2, i / 2, 10}));
    double sum = 0;
    for (const double factor : factors) sum += factor;
    std::vector<double> sorted = factors;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sum / 20000 == Approx(1).epsilon(0.01));
    double distance = 0;  // of Kolmogorov and Smirnov, from the uniform distribution
    for (std::size_t i = 0; i < sorted.size(); ++i)
        distance = std::max(distance, std::abs(static_cast<double>(i) / 20000 - (sorted[i] - 0.5)));
    CHECK(distance < 1.95 / std::sqrt(20000));  // exceeded once in a thousand times
    sim::Noise again(scenario, &placement);
    for (int i = 19999; i >= 0; i -= 7)
        REQUIRE(again.factor({1 + i % 2, i / 2, 10}) == factors[static_cast<std::size_t>(i)]);
    scenario.seeds.timing = 9;
    CHECK(sim::Noise(scenario, &placement).factor({1, 0, 10}) != factors[0]);
}

TEST_CASE("a device without quantiles keeps the scenario's noise beside one that has them") {
    const DeviceSpec device = scattered();
    const DeviceSpec plain;
    Scenario scenario = scenario_with(device);
    scenario.cluster.noise.cv = 0.3;
    sim::Placement placement;
    placement.device_of_role = {nullptr, &device, &plain};
    sim::Noise noise(scenario, &placement);
    CHECK(noise.factor({2, 5, 10}) == sim::noise_factor(scenario, 2, 5));
    CHECK(noise.factor({1, 5, 10}) != sim::noise_factor(scenario, 1, 5));
}

TEST_CASE("a table of sharing is interpolated, and beyond its ends goes on and is flagged") {
    DeviceSpec device = scattered();
    device.sharing = {{1, 1}, {2, 1.1}, {4, 1.5}};
    const auto at = [&](int workers) { return sim::gradient_seconds(device, {}, {1e9, 1, workers}, 10); };
    CHECK(at(1).value == Approx(0.1));
    CHECK(at(3).value == Approx(0.13));
    CHECK_FALSE(at(4).sharing_extrapolated);
    CHECK(at(6).value == Approx(0.19));
    CHECK(at(6).sharing_extrapolated);
    device.sharing = {{4, 1}};
    CHECK(at(1).value == Approx(0.1));
    CHECK(at(1).sharing_extrapolated);
    CHECK_FALSE(at(4).sharing_extrapolated);
    // A table that falls never leads below its smallest factor.
    device.sharing = {{1, 1}, {2, 0.5}};
    CHECK(at(9).value == Approx(0.05));
}

TEST_CASE("costs of the server grow with bytes") {
    ServerCostSpec server;
    server.push_s = 1e-3;
    server.push_s_per_byte = 1e-9;
    server.pull_s_per_byte = 2e-9;
    server.update_s_per_byte = 3e-9;
    CostSpec cost;
    cost.push_bytes = 1'000'000;
    cost.pull_bytes = 2'000'000;
    CHECK(server.push(cost) == Approx(2e-3));
    CHECK(server.pull(cost) == Approx(4e-3));
    CHECK(server.update(cost) == Approx(6e-3));
}

TEST_CASE("a scenario beyond what was measured is warned of, each thing once") {
    DeviceSpec device = scattered();
    device.sharing = {{1, 1}};
    Scenario scenario = scenario_with(device);
    scenario.workers.batch_size = 100;
    scenario.cost.push_bytes = 5000;
    scenario.cost.pull_bytes = 50;
    scenario.cluster.network.star.measured_bytes = MeasuredBytes{1000, 4000};
    scenario.cluster.server.measured_bytes = MeasuredBytes{50, 5000};
    const std::vector<sim::HostInfo> hosts{{"a", 1e9, 1}, {"b", 1e9, 1}, {"c", 1e9, 1}};
    const std::vector<std::string> expected{
        "cluster.devices.default: batch size 100 lies outside the table of seconds; extrapolated",
        "cluster.devices.default: 2 workers a host lie outside the table of host_sharing, 1 worker; extrapolated",
        "cluster.network.star: messages of 5000 bytes lie outside the 1000 to 4000 bytes that were measured; "
        "extrapolated"};
    CHECK(sim::place(scenario, hosts).warnings == expected);
    scenario.cluster.platform = "some.xml";  // the star plays no part
    CHECK(sim::place(scenario, hosts).warnings.size() == 2);
}
