// Counter-based random streams: every draw is a pure function of (seed, role, purpose, index), so that it depends on
// neither the order of events nor the backend. Distributions are our own: the standard library's differ by vendor.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace rubato::learn {

/// What a stream is for; part of its key, so that streams never share a number.
enum class Purpose : std::uint32_t {
    init,
    permutation,
    sample,
    noise_compute,
    noise_gradient,
    synthetic,
    split,
    partition,
    noise_common,
    straggler,
    fault
};

/// One block of Philox 4x32-10 (Salmon et al. 2011), a pure function; the generator below every stream.
std::array<std::uint32_t, 4> philox_block(const std::array<std::uint32_t, 4>& counter,
                                          const std::array<std::uint32_t, 2>& key);

/// A stream of 64-bit words keyed by (seed, role, purpose, index); Philox 4x32-10 (Salmon et al. 2011).
///
/// The seed is the key; the counter is {block, role, low half of index, purpose and the next 24 bits of index}, so no
/// two streams share a block. index < 2^56. A stream yields 2^33 words.
class Stream {
public:
    Stream(std::uint64_t seed, std::uint32_t role, Purpose purpose, std::uint64_t index);
    std::uint64_t bits();
    /// Uniform in (0, 1), 53 bits, never 0 or 1.
    double uniform();
    /// Uniform in {0, ..., bound - 1}, without modulo bias. bound >= 1.
    std::uint64_t below(std::uint64_t bound);
    /// Standard normal (Box-Muller; both values are used).
    double normal();
    /// Lognormal with mean 1 and coefficient of variation cv >= 0.
    double lognormal(double cv);
    /// Exponential, of that mean.
    double exponential(double mean);

private:
    std::array<std::uint32_t, 2> key_;
    std::array<std::uint32_t, 4> counter_;
    std::uint32_t have_ = 0;  ///< words not yet handed out, the last ones of words_
    std::array<std::uint64_t, 2> words_{};
    bool has_normal_ = false;
    double normal_ = 0;
};

/// A lognormal distribution with mean 1 and coefficient of variation cv > 0.
class Lognormal {
public:
    explicit Lognormal(double cv);
    /// The value that belongs to a standard normal one.
    double from_normal(double normal) const;
    /// Of the logarithm.
    double deviation() const { return deviation_; }
    /// The first draws of the streams (seed, role, purpose, index + 0 ... 3), computed side by side: the bits of
    /// Stream::lognormal, in a third of the time.
    std::array<double, 4> four(std::uint64_t seed, std::uint32_t role, Purpose purpose, std::uint64_t index) const;

private:
    double variance_, deviation_;  ///< of the logarithm
};

/// The same bits on every machine, which std::log and std::cos do not promise; within 2 units in the last place or so.
/// log_portable: x > 0, finite, normal. exp_portable: |x| < 700. cos_sin_turns: {cos, sin} of 2 pi turns, 0 <= turns
/// <= 1.
double log_portable(double x);
double exp_portable(double x);
std::array<double, 2> cos_sin_turns(double turns);

/// The standard normal distribution function, within 1e-14, in (0, 1), the same bits on every machine (Hart et al.
/// 1968, algorithm 5666, and a continued fraction beyond 7).
double normal_cdf(double x);

/// Fisher-Yates with its own stream: values becomes a uniform permutation of itself.
void shuffle(std::span<std::int32_t> values, Stream stream);

}  // namespace rubato::learn
