// One block of one step of each optimizer (optimizer.hpp has the formulas).
//
// The arrays of these loops are the same or apart, and no element depends on another: the compiler vectorizes them, and
// without contraction (meson.build) each element has the same bits however the loop is cut. The new weights may be the
// memory of the old ones or of the direction.
#pragma once

#include <cmath>
#include <cstddef>

namespace rubato::learn {

/// Where a step begins, and along which slope: the two ways of weight decay.
struct CoupledDecay {
    float decay;
    float slope(float d, float w) const { return d + decay * w; }
    float start(float w, float) const { return w; }
};
struct DecoupledDecay {
    float decay;
    float slope(float d, float) const { return d; }
    float start(float w, float rate) const { return w - rate * (decay * w); }
};
struct NoDecay {
    float slope(float d, float) const { return d; }
    float start(float w, float) const { return w; }
};

template <class Decay>
void descend_sgd(float* to, const float* from, const float* d, float rate, Decay decay, std::size_t n) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; i++) to[i] = decay.start(from[i], rate) - rate * decay.slope(d[i], from[i]);
}

template <class Decay>
void descend_momentum(float* to, const float* from, const float* d, float* __restrict v, float mu, float rate,
                      Decay decay, std::size_t n) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; i++) {
        v[i] = mu * v[i] - rate * decay.slope(d[i], from[i]);
        to[i] = decay.start(from[i], rate) + v[i];
    }
}

template <class Decay>
void descend_nesterov(float* to, const float* from, const float* d, float* __restrict v, float mu, float rate,
                      Decay decay, std::size_t n) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; i++) {
        const float move = rate * decay.slope(d[i], from[i]);
        v[i] = mu * v[i] - move;
        to[i] = decay.start(from[i], rate) + (mu * v[i] - move);
    }
}

template <class Decay>
void descend_adagrad(float* to, const float* from, const float* d, float* __restrict h, float epsilon, float rate,
                     Decay decay, std::size_t n) {
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; i++) {
        const float s = decay.slope(d[i], from[i]);
        h[i] = h[i] + s * s;
        to[i] = decay.start(from[i], rate) - rate * s / (std::sqrt(h[i]) + epsilon);
    }
}

struct AdamStep {
    float beta1, beta2, epsilon;
    float rate;        ///< over 1 - beta1^number
    float plain_rate;  ///< of decoupled weight decay
    float correction;  ///< 1 / (1 - beta2^number)
};

template <class Decay>
void descend_adam(float* to, const float* from, const float* d, float* __restrict m, float* __restrict v,
                  const AdamStep& step, Decay decay, std::size_t n) {
    const AdamStep a = step;
#pragma GCC ivdep
    for (std::size_t i = 0; i < n; i++) {
        const float s = decay.slope(d[i], from[i]);
        m[i] = a.beta1 * m[i] + (1 - a.beta1) * s;
        v[i] = a.beta2 * v[i] + (1 - a.beta2) * (s * s);
        to[i] = decay.start(from[i], a.plain_rate) - a.rate * m[i] / (std::sqrt(v[i] * a.correction) + a.epsilon);
    }
}

}  // namespace rubato::learn
