#include "learn/mix.hpp"

namespace rubato::learn {
namespace {

// `to` is a term or apart from it, and no element depends on another.
void mix_two(float* to, const float* a, const float* b, double fa, double fb, std::size_t n) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; i++)
        to[i] = static_cast<float>(fa * static_cast<double>(a[i]) + fb * static_cast<double>(b[i]));
}

void mix_three(float* to, const float* const* terms, const double* factors, std::size_t n) {
    const float *a = terms[0], *b = terms[1], *c = terms[2];
    const double fa = factors[0], fb = factors[1], fc = factors[2];
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; i++)
        to[i] = static_cast<float>(fa * static_cast<double>(a[i]) + fb * static_cast<double>(b[i]) +
                                   fc * static_cast<double>(c[i]));
}

}  // namespace

void mix(std::span<float> to, std::span<const float* const> terms, const double* factors) {
    const std::size_t n = to.size();
    if (terms.size() == 2) return mix_two(to.data(), terms[0], terms[1], factors[0], factors[1], n);
    if (terms.size() == 3) return mix_three(to.data(), terms.data(), factors, n);
    for (std::size_t i = 0; i < n; i++) {
        double sum = 0;
        for (std::size_t k = 0; k < terms.size(); k++) sum += factors[k] * static_cast<double>(terms[k][i]);
        to[i] = static_cast<float>(sum);
    }
}

}  // namespace rubato::learn
