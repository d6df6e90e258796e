#include "learn/random.hpp"

#include <Random123/philox.h>

#include <cassert>
#include <cmath>

namespace rubato::learn {

std::array<std::uint32_t, 4> philox_block(const std::array<std::uint32_t, 4>& counter,
                                          const std::array<std::uint32_t, 2>& key) {
    const r123::Philox4x32::ctr_type c = {{counter[0], counter[1], counter[2], counter[3]}};
    const r123::Philox4x32::key_type k = {{key[0], key[1]}};
    const auto out = r123::Philox4x32()(c, k);
    return {out[0], out[1], out[2], out[3]};
}

Stream::Stream(std::uint64_t seed, std::uint32_t role, Purpose purpose, std::uint64_t index)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, role, static_cast<std::uint32_t>(index),
               static_cast<std::uint32_t>(purpose) << 24 | static_cast<std::uint32_t>(index >> 32)} {
    assert(index >> 56 == 0);
}

std::uint64_t Stream::bits() {
    if (have_ == 0) {
        const auto block = philox_block(counter_, key_);
        counter_[0]++;
        words_[0] = block[0] | std::uint64_t{block[1]} << 32;
        words_[1] = block[2] | std::uint64_t{block[3]} << 32;
        have_ = 2;
    }
    return words_[2 - have_--];
}

double Stream::uniform() {
    // The middle of one of 2^52 equal intervals: exact in a double, hence never rounded to 0 or 1.
    return (static_cast<double>(bits() >> 12) + 0.5) * 0x1p-52;
}

std::uint64_t Stream::below(std::uint64_t bound) {
    assert(bound >= 1);
    // Lemire 2019, "Fast random integer generation in an interval", algorithm 5.
    auto product = static_cast<unsigned __int128>(bits()) * bound;
    if (static_cast<std::uint64_t>(product) < bound) {
        const std::uint64_t threshold = -bound % bound;
        while (static_cast<std::uint64_t>(product) < threshold)
            product = static_cast<unsigned __int128>(bits()) * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
}

double Stream::normal() {
    if (has_normal_) {
        has_normal_ = false;
        return normal_;
    }
    const double radius = std::sqrt(-2 * log_portable(uniform()));
    const auto [cosine, sine] = cos_sin_turns(uniform());
    has_normal_ = true;
    normal_ = radius * sine;
    return radius * cosine;
}

double Stream::lognormal(double cv) {
    if (cv == 0) return 1;
    const double variance = log_portable(1 + cv * cv);
    return exp_portable(std::sqrt(variance) * normal() - variance / 2);
}

double log_portable(double x) {
    int exponent = 0;
    double m = std::frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    // log m = 2 artanh s; |s| <= 0.172, so the series to s^21 is exact to 1e-18.
    const double s = (m - 1) / (m + 1);
    const double s2 = s * s;
    double sum = 0;
    for (int k = 21; k >= 3; k -= 2) sum = (sum + 1.0 / k) * s2;
    const double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;  // Cody and Waite
    return exponent * ln2_high + (2 * s + (2 * s * sum + exponent * ln2_low));
}

double exp_portable(double x) {
    const double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
    const double k = std::floor(x * 1.4426950408889634 + 0.5);
    const double r = (x - k * ln2_high) - k * ln2_low;
    double sum = 1;  // Horner over r^n / n!, |r| <= 0.35
    for (int n = 14; n >= 1; n--) sum = 1 + sum * r / n;
    return std::ldexp(sum, static_cast<int>(k));
}

std::array<double, 2> cos_sin_turns(double turns) {
    // Reduced exactly to an eighth of a turn on either side of a quarter.
    const int quarter = static_cast<int>(std::floor(turns * 4 + 0.5));
    const double angle = (turns - quarter * 0.25) * 6.283185307179586;
    const double a2 = angle * angle;
    double cosine = 1, sine = 1;
    for (int n = 16; n >= 2; n -= 2) {
        cosine = 1 - cosine * a2 / (n * (n - 1));
        sine = 1 - sine * a2 / (n * (n + 1));
    }
    sine *= angle;
    switch (quarter % 4) {
        case 0: return {cosine, sine};
        case 1: return {-sine, cosine};
        case 2: return {-cosine, -sine};
        default: return {sine, -cosine};
    }
}

void shuffle(std::span<std::int32_t> values, Stream stream) {
    for (std::size_t i = values.size(); i > 1; i--) std::swap(values[i - 1], values[stream.below(i)]);
}

}  // namespace rubato::learn
