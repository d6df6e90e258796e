#include "learn/random.hpp"

#include <Random123/philox.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace rubato::learn {

namespace {

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

Key key_of(std::uint64_t seed) {
    return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

Counter first_counter(std::uint32_t role, Purpose purpose, std::uint64_t index) {
    assert(index >> 56 == 0);
    return {0, role, static_cast<std::uint32_t>(index),
            static_cast<std::uint32_t>(purpose) << 24 | static_cast<std::uint32_t>(index >> 32)};
}

/// A block as words of 64 bits.
std::array<std::uint64_t, 2> words_of(const Counter& counter, const Key& key) {
    const r123::Philox4x32::ctr_type c = {{counter[0], counter[1], counter[2], counter[3]}};
    const r123::Philox4x32::key_type k = {{key[0], key[1]}};
    const auto out = r123::Philox4x32()(c, k);
    return {out[0] | std::uint64_t{out[1]} << 32, out[2] | std::uint64_t{out[3]} << 32};
}

/// The middle of one of 2^52 equal intervals: exact in a double, hence never rounded to 0 or 1.
double uniform_of(std::uint64_t bits) {
    return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

}  // namespace

std::array<std::uint32_t, 4> philox_block(const std::array<std::uint32_t, 4>& counter,
                                          const std::array<std::uint32_t, 2>& key) {
    const auto [low, high] = words_of(counter, key);
    return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
            static_cast<std::uint32_t>(high >> 32)};
}

Stream::Stream(std::uint64_t seed, std::uint32_t role, Purpose purpose, std::uint64_t index)
    : key_(key_of(seed)), counter_(first_counter(role, purpose, index)) {}

std::uint64_t Stream::bits() {
    if (have_ == 0) {
        words_ = words_of(counter_, key_);
        counter_[0]++;
        have_ = 2;
    }
    return words_[2 - have_--];
}

double Stream::uniform() {
    return uniform_of(bits());
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

double Stream::exponential(double mean) {
    return -mean * log_portable(uniform());
}

double Stream::lognormal(double cv) {
    return cv == 0 ? 1 : Lognormal(cv).from_normal(normal());
}

namespace {

// The functions below are written once for a number and for four side by side: their bits are the same, as each lane
// does the same operations (and no compiler may fuse two of them, see meson.build).
using Four = double __attribute__((vector_size(32)));
using FourWords = std::int64_t __attribute__((vector_size(32)));

/// x = m * 2^exponent with m in [0.5, 1), for normal x > 0.
void split(double x, double& m, double& exponent) {
    const auto bits = std::bit_cast<std::int64_t>(x);
    m = std::bit_cast<double>((bits & 0xfffffffffffff) | 0x3fe0000000000000);
    exponent = static_cast<double>((bits >> 52) - 1022);
}
void split(const Four& x, Four& m, Four& exponent) {
    const auto bits = std::bit_cast<FourWords>(x);
    m = std::bit_cast<Four>((bits & 0xfffffffffffff) | 0x3fe0000000000000);
    exponent = __builtin_convertvector((bits >> 52) - 1022, Four);
}

/// x * 2^k for a whole k, where x and the product are normal.
double scale(double x, double k) {
    return x * std::bit_cast<double>((static_cast<std::int64_t>(k) + 1023) << 52);
}
Four scale(const Four& x, const Four& k) {
    return x * std::bit_cast<Four>((__builtin_convertvector(k, FourWords) + 1023) << 52);
}

double floor_of(double x) {
    return std::floor(x);
}
Four floor_of(const Four& x) {
    return Four{std::floor(x[0]), std::floor(x[1]), std::floor(x[2]), std::floor(x[3])};
}
Four root_of(const Four& x) {
    return Four{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])};
}

template <class T>
T log_of(const T& x) {
    T m, exponent;
    split(x, m, exponent);
    const auto low = m < 0.70710678118654752;
    m = low ? m * 2 : m;
    exponent = low ? exponent - 1 : exponent;
    // log m = 2 artanh s; |s| <= 0.172, so the series to s^21 is exact to 1e-18.
    const T s = (m - 1) / (m + 1);
    const T s2 = s * s;
    T sum = s2 - s2;
    for (int k = 21; k >= 3; k -= 2) sum = (sum + 1.0 / k) * s2;
    const double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;  // Cody and Waite
    return exponent * ln2_high + (2 * s + (2 * s * sum + exponent * ln2_low));
}

/// 1 / n!, for the series of exp, cos and sin.
constexpr auto inverse_factorials = [] {
    std::array<double, 18> values{};
    double factorial = 1;  // exact up to 18!
    for (std::size_t n = 0; n < values.size(); ++n) {
        values[n] = 1 / factorial;
        factorial *= static_cast<double>(n + 1);
    }
    return values;
}();

/// Sum over n = first, first + 2, ... up to `last` of sign^(n / 2) x^(n - first) / n!; x2 = x * x.
template <int first, int last, int sign, class T>
T every_second_term(const T& x2) {
    T sum = x2 - x2;
    for (int n = last; n >= first; n -= 2) {
        const double term = inverse_factorials[static_cast<std::size_t>(n)];
        sum = sum * x2 + (sign < 0 && n / 2 % 2 == 1 ? -term : term);
    }
    return sum;
}

template <class T>
T exp_of(const T& x) {
    const double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45;
    const T k = floor_of(x * 1.4426950408889634 + 0.5);
    const T r = (x - k * ln2_high) - k * ln2_low;  // |r| <= 0.35
    const T r2 = r * r;
    // Even and odd terms by themselves, so that neither chain waits for the other.
    const T even = every_second_term<2, 14, 1>(r2), odd = every_second_term<1, 13, 1>(r2);
    return scale(1 + (r * odd + r2 * even), k);
}

template <class T>
void cos_sin_of(const T& turns, T& cosine, T& sine) {
    // Reduced exactly to an eighth of a turn on either side of a quarter.
    const T quarter = floor_of(turns * 4 + 0.5);
    const T angle = (turns - quarter * 0.25) * 6.283185307179586;
    const T a2 = angle * angle;
    const T c = every_second_term<0, 16, -1>(a2);
    const T s = angle * every_second_term<1, 17, -1>(a2);
    const auto odd = (quarter == 1) | (quarter == 3);
    const T across = odd ? s : c;
    const T along = odd ? c : s;
    cosine = ((quarter == 1) | (quarter == 2)) ? -across : across;
    sine = ((quarter == 2) | (quarter == 3)) ? -along : along;
}

}  // namespace

double log_portable(double x) {
    return log_of(x);
}

double exp_portable(double x) {
    return exp_of(x);
}

std::array<double, 2> cos_sin_turns(double turns) {
    double cosine, sine;
    cos_sin_of(turns, cosine, sine);
    return {cosine, sine};
}

double normal_cdf(double x) {
    const double far = std::min(std::abs(x), 37.0);
    const double density = exp_portable(-far * far / 2);
    double tail;
    if (far < 7.07106781186547) {
        double above = 0.0352624965998911, below = 0.0883883476483184;
        for (const double term : {0.700383064443688, 6.37396220353165, 33.912866078383, 112.079291497871,
                                  221.213596169931, 220.206867912376})
            above = above * far + term;
        for (const double term : {1.75566716318264, 16.064177579207, 86.7807322029461, 296.564248779674,
                                  637.333633378831, 793.826512519948, 440.413735824752})
            below = below * far + term;
        tail = density * above / below;
    } else {
        double fraction = far + 0.65;
        for (const double term : {4.0, 3.0, 2.0, 1.0}) fraction = far + term / fraction;
        tail = density / fraction / 2.506628274631;
    }
    return x > 0 ? std::min(1 - tail, 1 - 0x1p-53) : tail;
}

double Lognormal::from_normal(double normal) const {
    return exp_portable(deviation_ * normal - variance_ / 2);
}

Lognormal::Lognormal(double cv) : variance_(log_portable(1 + cv * cv)), deviation_(std::sqrt(variance_)) {}

std::array<double, 4> Lognormal::four(std::uint64_t seed, std::uint32_t role, Purpose purpose,
                                      std::uint64_t index) const {
    Four first, second;
    for (std::uint64_t i = 0; i < 4; ++i) {
        const auto words = words_of(first_counter(role, purpose, index + i), key_of(seed));
        first[i] = uniform_of(words[0]);
        second[i] = uniform_of(words[1]);
    }
    const Four radius = root_of(-2 * log_of(first));
    Four cosine, sine;
    cos_sin_of(second, cosine, sine);
    const Four value = exp_of(deviation_ * (radius * cosine) - variance_ / 2);
    return {value[0], value[1], value[2], value[3]};
}

void shuffle(std::span<std::int32_t> values, Stream stream) {
    for (std::size_t i = values.size(); i > 1; i--) std::swap(values[i - 1], values[stream.below(i)]);
}

}  // namespace rubato::learn
