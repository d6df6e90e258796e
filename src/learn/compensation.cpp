#include "learn/compensation.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::learn {
namespace {

constexpr float mean_square_floor = 1e-7f, gap_floor = 1e-8f;

// As in optimizer.cpp: no element depends on another, and none is computed with contraction.

void compensate(float* __restrict out, const float* __restrict g, const float* __restrict now,
                const float* __restrict then, float strength, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) out[i] = g[i] + (strength * (g[i] * g[i])) * (now[i] - then[i]);
}

void mean_square(float* __restrict s, const float* __restrict g, float decay, std::size_t n) {
    for (std::size_t i = 0; i < n; i++) s[i] = decay * s[i] + (1 - decay) * (g[i] * g[i]);
}

void compensate_adaptively(float* __restrict out, const float* __restrict g, const float* __restrict now,
                           const float* __restrict then, const float* __restrict s, float strength, std::size_t n) {
    for (std::size_t i = 0; i < n; i++)
        out[i] = g[i] + (strength / std::sqrt(s[i] + mean_square_floor) * (g[i] * g[i])) * (now[i] - then[i]);
}

void divide_by_gap(float* __restrict out, const float* __restrict g, const float* __restrict now,
                   const float* __restrict then, const float* __restrict q, float correction, float rate,
                   std::size_t n) {
    for (std::size_t i = 0; i < n; i++)
        out[i] = g[i] / (1 + std::abs(now[i] - then[i]) / (rate * (std::sqrt(q[i] * correction) + gap_floor)));
}

void watch_step(float* __restrict q, const float* __restrict old, const float* __restrict made, float rate, float decay,
                std::size_t n) {
    for (std::size_t i = 0; i < n; i++) {
        const float u = (old[i] - made[i]) / rate;
        q[i] = decay * q[i] + (1 - decay) * (u * u);
    }
}

}  // namespace

Compensation::Compensation(const StalenessRule& rule, double rate, int workers)
    : looks_(rule.looks_at_weights()),
      gap_(rule.kind == StalenessRule::Kind::gap_aware),
      adaptive_(rule.kind == StalenessRule::Kind::delay_compensation && rule.adaptive),
      by_worker_(rule.mean_square_by_worker),
      decay_double_(rule.decay),
      strength_(static_cast<float>(rule.strength)),
      decay_(static_cast<float>(rule.decay)),
      rate_(static_cast<float>(rate)),
      workers_(workers) {}

int Compensation::arrays() const {
    if (gap_) return 1;
    if (adaptive_) return by_worker_ ? workers_ : 1;
    return 0;
}

void Compensation::correct(const Summand& summand, const float* g, const float* now, const Block& block,
                           float* out) const {
    const float* then = summand.then == nullptr ? nullptr : summand.then + block.first;
    float* s = nullptr;
    if (adaptive_) {
        const auto array = static_cast<std::size_t>(by_worker_ ? summand.worker : 0);
        s = block.state + array * block.elements + block.first;
        mean_square(s, g, decay_, block.n);
    }
    // Where nothing moves there is no gap.
    if (then == nullptr || (gap_ && rate_ <= 0)) {
        std::copy_n(g, block.n, out);
    } else if (gap_) {
        const double grown = 1 - std::pow(decay_double_, static_cast<double>(block.steps));
        const float correction = grown > 0 ? static_cast<float>(1 / grown) : 1;
        divide_by_gap(out, g, now, then, block.state + block.first, correction, rate_, block.n);
    } else if (adaptive_) {
        compensate_adaptively(out, g, now, then, s, strength_, block.n);
    } else {
        compensate(out, g, now, then, strength_, block.n);
    }
}

void Compensation::watch(const float* old, const float* made, float rate, const Block& block) const {
    if (rate > 0) watch_step(block.state + block.first, old, made, rate, decay_, block.n);
}

}  // namespace rubato::learn
