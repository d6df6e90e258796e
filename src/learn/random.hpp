// Counter-based random streams: every draw is a pure function of (seed, role, purpose, index), so that it depends on
// neither the order of events nor the backend. Distributions are our own: the standard library's differ by vendor.
#pragma once

#include <cstdint>
#include <span>

namespace rubato::learn {

/// What a stream is for; part of its key, so that streams never share a number.
enum class Purpose : std::uint32_t { init, permutation, sample, noise_compute, noise_gradient, synthetic, split, partition };

/// A stream of 64-bit words keyed by (seed, role, purpose, index); Philox 4x32-10 (Salmon et al. 2011).
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

private:
    std::uint64_t key_[2];
    std::uint32_t counter_ = 0;
    std::uint32_t have_ = 0;
    std::uint64_t words_[2]{};
    bool has_normal_ = false;
    double normal_ = 0;
};

/// Fisher-Yates with its own stream: values becomes a uniform permutation of itself.
void shuffle(std::span<std::int32_t> values, Stream stream);

}  // namespace rubato::learn
