// Slow moments that the workers of a host share.
#include "sim/noise.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace rubato;
using doctest::Approx;

namespace {

/// Pearson's coefficient.
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    const auto n = static_cast<double>(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        sa += a[i], sb += b[i];
        saa += a[i] * a[i], sbb += b[i] * b[i], sab += a[i] * b[i];
    }
    return (sab - sa * sb / n) / std::sqrt((saa - sa * sa / n) * (sbb - sb * sb / n));
}

/// Three workers, the first two on one host.
struct Cluster {
    Scenario scenario;
    DeviceSpec device;
    sim::Placement placement;
    explicit Cluster(double share, double time_s) {
        scenario.workers.groups = {{3, "default", 0}};
        scenario.cluster.noise = {0.3, {share, time_s}};
        placement.device_of_role = {nullptr, &device, &device, &device};
        placement.host_of_role = {0, 1, 1, 2};
    }
    std::vector<double> logarithms(RoleId role, Time shift_ns) {
        sim::Noise noise(scenario, &placement);
        std::vector<double> values;
        for (std::int64_t i = 0; i < 20000; ++i)
            values.push_back(std::log(noise.factor({role, i, 10, i * 1'000'000'007 + shift_ns})));
        return values;
    }
};

}  // namespace

TEST_CASE("workers of a host that begin together are correlated by the share, others not at all") {
    Cluster cluster(0.4, 0.05);
    const auto first = cluster.logarithms(1, 0);
    CHECK(correlation(first, cluster.logarithms(2, 0)) == Approx(0.4).epsilon(0.05));
    CHECK(std::abs(correlation(first, cluster.logarithms(3, 0))) < 0.03);
    // 20,000 pairs know a correlation to 0.007.
    CHECK(correlation(first, cluster.logarithms(2, 50'000'000)) ==
          Approx(0.4 * sim::common_correlation(1)).epsilon(0.25));
    CHECK(std::abs(correlation(first, cluster.logarithms(2, 100'000'000))) < 0.03);
}

TEST_CASE("the times of a worker, one after another, are scattered as they are without a common part") {
    for (const double time_s : {0.005, 0.05, 0.5, 5.0}) {
        for (const double share : {0.3, 1.0}) {
            const bool measured = share < 1;
            Cluster cluster(share, time_s);
            if (measured) {
                cluster.device.levels = {0, 0.5, 0.9, 1};
                cluster.device.shapes = {{10, {0.5, 0.9, 1.3, 3.08}}};
            }
            sim::Noise noise(cluster.scenario, &cluster.placement);
            constexpr int n = 100000;
            constexpr double mean_s = 0.05;
            double sum = 0, squares = 0;
            Time now = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                const double factor = noise.factor({1, i, 10, now, mean_s});
                sum += factor;
                squares += factor * factor;
                now += static_cast<Time>(factor * mean_s * 1e9);
            }
            CAPTURE(time_s);
            CAPTURE(share);
            // Long moments are few: of 5 s there are 1000.
            CHECK(sum / n == Approx(1).epsilon(0.01 + 0.3 * std::sqrt(time_s / (n * mean_s))));
            if (!measured) CHECK(std::sqrt(squares / n - sum / n * (sum / n)) == Approx(0.3).epsilon(0.05));
        }
    }
}

TEST_CASE("the common part depends on time, host and seed alone, and falls as stated") {
    CHECK(sim::common_normal(1, 0.1, 3, 12345) == sim::common_normal(1, 0.1, 3, 12345));
    CHECK(sim::common_normal(1, 0.1, 3, 12345) != sim::common_normal(2, 0.1, 3, 12345));
    CHECK(sim::common_normal(1, 0.1, 3, 12345) != sim::common_normal(1, 0.1, 4, 12345));
    CHECK(sim::common_correlation(0) == Approx(1));
    CHECK(sim::common_correlation(1) == Approx(0.285).epsilon(0.01));
    CHECK(sim::common_correlation(2) == 0);
    double squares = 0;
    for (Time at = 0; at < 20000; ++at) squares += std::pow(sim::common_normal(1, 1e-6, 0, at * 10'007), 2);
    CHECK(squares / 20000 == Approx(1).epsilon(0.04));
}

TEST_CASE("the normal distribution function agrees with the error function") {
    for (double x = -30; x <= 30; x += 0.0078125) {
        const double expected = 0.5 * std::erfc(-x / std::sqrt(2.0));
        REQUIRE(learn::normal_cdf(x) == Approx(expected).epsilon(1e-13));
    }
    CHECK(learn::normal_cdf(-100) > 0);
    CHECK(learn::normal_cdf(100) < 1);
}
