#include "learn/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

namespace rubato::learn {

TEST_CASE("philox gives the known answers of Random123") {
    using Block = std::array<std::uint32_t, 4>;
    CHECK(philox_block({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox_block({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox_block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
          Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a stream reads philox blocks in order, low words first") {
    Stream zero(0, 0, Purpose::init, 0);
    CHECK(zero.bits() == 0xe169c58d6627e8d5);
    CHECK(zero.bits() == 0x9b00dbd8bc57ac4c);
    const auto second = philox_block({1, 0, 0, 0}, {0, 0});
    CHECK(zero.bits() == (second[0] | std::uint64_t{second[1]} << 32));

    Stream other(0x1122334455667788, 7, Purpose::sample, 0x00abcdef12345678);
    const auto block = philox_block({0, 7, 0x12345678, 0x02abcdef}, {0x55667788, 0x11223344});
    CHECK(other.bits() == (block[0] | std::uint64_t{block[1]} << 32));
}

TEST_CASE("streams differ in every part of their key") {
    std::set<std::uint64_t> firsts;
    for (std::uint64_t seed : {1ull, 2ull, 1ull << 32})
        for (std::uint32_t role : {0u, 1u, 1u << 31})
            for (Purpose purpose : {Purpose::init, Purpose::permutation, Purpose::partition})
                for (std::uint64_t index : {0ull, 1ull, 1ull << 32, 1ull << 55})
                    firsts.insert(Stream(seed, role, purpose, index).bits());
    CHECK(firsts.size() == 3 * 3 * 3 * 4);
}

TEST_CASE("uniform is uniform and never 0 or 1") {
    constexpr int n = 200000;
    Stream stream(1, 2, Purpose::noise_compute, 3);
    double sum = 0, squares = 0, smallest = 1, largest = 0;
    for (int i = 0; i < n; i++) {
        const double u = stream.uniform();
        sum += u;
        squares += u * u;
        smallest = std::min(smallest, u);
        largest = std::max(largest, u);
    }
    // Five standard errors.
    CHECK(sum / n == doctest::Approx(0.5).epsilon(5 * 0.2887 / std::sqrt(n) / 0.5));
    CHECK(squares / n == doctest::Approx(1.0 / 3).epsilon(5 * 0.298 / std::sqrt(n) * 3));
    CHECK(smallest > 0);
    CHECK(smallest < 1e-4);
    CHECK(largest < 1);
    CHECK(largest > 1 - 1e-4);
}

TEST_CASE("below has no bias") {
    for (std::uint64_t bound : {1ull, 2ull, 3ull, 10ull, 1000ull}) {
        Stream stream(5, 0, Purpose::sample, bound);
        std::vector<int> counts(bound);
        const int n = static_cast<int>(bound) * 200;
        for (int i = 0; i < n; i++) counts[stream.below(bound)]++;
        double chi_squared = 0;
        for (int count : counts) chi_squared += (count - 200.0) * (count - 200.0) / 200;
        const double degrees = static_cast<double>(bound - 1);
        CHECK(std::abs(chi_squared - degrees) <= 5 * std::sqrt(2 * degrees));
    }
    // With 3/4 of 2^64 a modulo would give the lower third twice as often as the rest.
    Stream stream(5, 1, Purpose::sample, 0);
    const std::uint64_t bound = 3ull << 62;
    int low = 0;
    for (int i = 0; i < 30000; i++) low += stream.below(bound) < bound / 3;
    CHECK(low == doctest::Approx(10000).epsilon(0.05));
}

TEST_CASE("normal has the moments and the distribution of N(0, 1)") {
    constexpr int n = 200000;
    Stream stream(9, 0, Purpose::noise_gradient, 0);
    std::vector<double> values(n);
    for (double& value : values) value = stream.normal();
    double moments[5] = {};
    for (double value : values)
        for (int k = 1; k <= 4; k++) moments[k] += std::pow(value, k) / n;
    CHECK(std::abs(moments[1]) < 5 / std::sqrt(n));
    CHECK(std::abs(moments[2] - 1) < 5 * std::sqrt(2.0 / n));
    CHECK(std::abs(moments[3]) < 5 * std::sqrt(15.0 / n));
    CHECK(std::abs(moments[4] - 3) < 5 * std::sqrt(96.0 / n));
    std::ranges::sort(values);
    double distance = 0;  // Kolmogorov and Smirnov
    for (int i = 0; i < n; i++)
        distance = std::max(distance, std::abs(0.5 * std::erfc(-values[i] / std::sqrt(2.0)) - (i + 0.5) / n));
    CHECK(distance < 1.95 / std::sqrt(n));  // 0.1 % level
}

TEST_CASE("both values of a Box-Muller pair are used, and they are independent") {
    Stream stream(9, 1, Purpose::noise_gradient, 0);
    double products = 0;
    for (int i = 0; i < 100000; i++) products += stream.normal() * stream.normal();
    CHECK(std::abs(products / 100000) < 5 / std::sqrt(100000.0));
}

TEST_CASE("lognormal has mean 1 and the coefficient of variation asked for") {
    for (double cv : {0.1, 0.5}) {
        constexpr int n = 200000;
        Stream stream(3, 0, Purpose::noise_compute, 0);
        double sum = 0, squares = 0;
        for (int i = 0; i < n; i++) {
            const double value = stream.lognormal(cv);
            CHECK(value > 0);
            sum += value;
            squares += value * value;
        }
        const double mean = sum / n;
        CHECK(mean == doctest::Approx(1).epsilon(5 * cv / std::sqrt(n)));
        CHECK(std::sqrt(squares / n - mean * mean) == doctest::Approx(cv).epsilon(0.03));
    }
    CHECK(Stream(3, 0, Purpose::noise_compute, 0).lognormal(0) == 1);
}

TEST_CASE("portable functions agree with the library's") {
    Stream stream(4, 0, Purpose::noise_compute, 0);
    for (int i = 0; i < 20000; i++) {
        const double u = stream.uniform();
        CHECK(log_portable(u) == doctest::Approx(std::log(u)).epsilon(1e-15));
        const double x = 60 * (u - 0.5);
        CHECK(exp_portable(x) == doctest::Approx(std::exp(x)).epsilon(1e-14));
        const auto [cosine, sine] = cos_sin_turns(u);
        CHECK(std::abs(cosine - std::cos(2 * M_PI * u)) < 1e-15);
        CHECK(std::abs(sine - std::sin(2 * M_PI * u)) < 1e-15);
    }
    CHECK(log_portable(1) == 0);
    CHECK(exp_portable(0) == 1);
}

TEST_CASE("draws are fixed for ever: recorded runs rely on them") {
    Stream stream(1, 0, Purpose::noise_compute, 0);
    const double normal = stream.normal();
    const double lognormal = stream.lognormal(0.2);
    CHECK(Stream(1, 0, Purpose::noise_compute, 0).normal() == normal);
    CAPTURE(normal);
    CAPTURE(lognormal);
    CHECK(normal == 0x1.cda29b2e082b9p-2);
    CHECK(lognormal == 0x1.2e6ac87f27734p+0);
}

TEST_CASE("shuffle makes every permutation equally often") {
    std::vector<int> counts(24);
    for (std::uint64_t i = 0; i < 24 * 500; i++) {
        std::vector<std::int32_t> values{0, 1, 2, 3};
        shuffle(values, Stream(1, 0, Purpose::permutation, i));
        std::vector<std::int32_t> order{0, 1, 2, 3};
        std::size_t rank = 0;
        while (order != values) {
            std::ranges::next_permutation(order);
            rank++;
        }
        counts[rank]++;
    }
    double chi_squared = 0;
    for (int count : counts) chi_squared += (count - 500.0) * (count - 500.0) / 500;
    CHECK(chi_squared < 23 + 5 * std::sqrt(46.0));
}

}  // namespace rubato::learn
