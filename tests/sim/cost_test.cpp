#include "sim/cost.hpp"

#include "sim/network_fixture.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using doctest::Approx;
using sim::gradient_seconds;

namespace {

const sim::ComputeSite alone{1e9, 1, 1};

DeviceSpec table(std::vector<std::pair<double, double>> entries) {
    DeviceSpec device;
    device.kind = DeviceSpec::Kind::table;
    device.table = std::move(entries);
    return device;
}

}  // namespace

TEST_CASE("FLOPs on the speed of the host, cores shared when they run out") {
    CostSpec cost;
    cost.flops_per_sample = 1e6;
    const DeviceSpec device;
    CHECK(gradient_seconds(device, cost, {1e9, 1, 1}, 32).value == Approx(0.032));
    CHECK(gradient_seconds(device, cost, {2e9, 1, 1}, 32).value == Approx(0.016));
    CHECK(gradient_seconds(device, cost, {1e9, 4, 4}, 32).value == Approx(0.032));
    CHECK(gradient_seconds(device, cost, {1e9, 4, 8}, 32).value == Approx(0.064));
    CHECK(tests::platform_error([&] { gradient_seconds(device, CostSpec{}, alone, 32); }) ==
          "cost: what a gradient costs is unknown: cost.flops_per_sample is missing, and the device gives no seconds; "
          "expected one of the two");
}

TEST_CASE("a table is interpolated, and beyond its ends extrapolated and flagged") {
    const auto device = table({{8, 0.03}, {16, 0.05}, {64, 0.05 + 0.24}});
    const auto at = [&](int batch) { return gradient_seconds(device, {}, alone, batch); };
    CHECK(at(8).value == Approx(0.03));
    CHECK(at(12).value == Approx(0.04));
    CHECK(at(16).value == Approx(0.05));
    CHECK(at(40).value == Approx(0.17));
    CHECK(at(64).value == Approx(0.29));
    for (const int batch : {8, 12, 64}) CHECK_FALSE(at(batch).extrapolated);
    CHECK(at(128).value == Approx(0.29 + 64 * 0.005));
    CHECK(at(128).extrapolated);
    CHECK(at(4).value == Approx(0.02));
    CHECK(at(4).extrapolated);
}

TEST_CASE("below a steep table the seconds stay in proportion, never negative") {
    const auto device = table({{8, 0.01}, {16, 0.05}});
    CHECK(gradient_seconds(device, {}, alone, 4).value == Approx(0.005));
}

TEST_CASE("a table of one entry is proportional") {
    const auto device = table({{32, 0.1}});
    CHECK(gradient_seconds(device, {}, alone, 32).value == Approx(0.1));
    CHECK_FALSE(gradient_seconds(device, {}, alone, 32).extrapolated);
    CHECK(gradient_seconds(device, {}, alone, 16).value == Approx(0.05));
    CHECK(gradient_seconds(device, {}, alone, 16).extrapolated);
}

TEST_CASE("curves, and workers that share a host") {
    DeviceSpec power;
    power.kind = DeviceSpec::Kind::power;
    power.c = 0.1;
    power.p = 0.5;
    power.b0 = 4;
    power.host_sharing = 0.25;
    CHECK(gradient_seconds(power, {}, alone, 16).value == Approx(0.2));
    CHECK(gradient_seconds(power, {}, {1e9, 1, 5}, 16).value == Approx(0.4));
    DeviceSpec affine;
    affine.kind = DeviceSpec::Kind::affine;
    affine.a = 0.01;
    affine.b = 0.001;
    CHECK(gradient_seconds(affine, {}, alone, 32).value == Approx(0.042));
}
