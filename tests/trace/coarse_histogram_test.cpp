#include "trace/coarse_histogram.hpp"

#include "trace/histogram.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace rubato::trace;

TEST_CASE("an empty histogram has no figures") {
    const CoarseHistogram histogram;
    CHECK_FALSE(histogram.mean().has_value());
    CHECK_FALSE(histogram.percentile(99).has_value());
}

TEST_CASE("small values are exact, in whatever order they come") {
    CoarseHistogram coarse;
    Histogram exact;
    for (int i = 0; i < 5000; ++i) {
        const int value = (i * 7919 + i / 3) % 256;
        coarse.add(value);
        exact.add(value);
    }
    coarse.add(-1);  // left out
    for (const int percent : {1, 25, 50, 75, 99, 100}) CHECK(coarse.percentile(percent) == exact.percentile(percent));
    CHECK(coarse.mean() == exact.mean());
}

TEST_CASE("large values are at most 1/128 too large, never too small") {
    CoarseHistogram coarse;
    Histogram exact;
    for (std::int64_t i = 0; i < 20000; ++i) {
        const std::int64_t value = 200 + i * i % 30011 * 17;
        coarse.add(value);
        exact.add(value);
    }
    for (const int percent : {1, 10, 50, 90, 99, 100}) {
        const auto value = *coarse.percentile(percent), truth = *exact.percentile(percent);
        CHECK(value >= truth);
        CHECK(static_cast<double>(value) <= static_cast<double>(truth) * (1 + 1.0 / 128));
    }
    CHECK(*coarse.mean() == doctest::Approx(*exact.mean()));
    CHECK(*coarse.percentile(100) == exact.max());
}

TEST_CASE("class edges") {
    for (const std::int64_t value : {0L, 1L, 127L, 128L, 255L, 256L, 257L, 511L, 512L, 513L, 1L << 40}) {
        CoarseHistogram histogram;
        histogram.add(value);
        CHECK(histogram.percentile(1) == value);  // a class ends where the largest value is known
    }
}
