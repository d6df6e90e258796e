#include "learn/network.hpp"

#include "learn/random.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::learn {
namespace {

/// log of the sum of exp(logits), in double and without overflow. NaN where a logit is NaN.
double log_sum(const float* logits, int classes) {
    double largest = logits[0];
    for (int k = 1; k < classes; k++) largest = std::max(largest, double{logits[k]});
    double sum = 0;
    for (int k = 0; k < classes; k++) sum += std::exp(logits[k] - largest);
    return largest + std::log(sum);
}

bool right(const float* logits, int label, int classes) {
    for (int k = 0; k < classes; k++) {
        if (k < label && !(logits[label] > logits[k])) return false;
        if (k > label && !(logits[label] >= logits[k])) return false;
    }
    return true;
}

}  // namespace

double softmax_loss(float* logits, const std::uint8_t* labels, int count, int classes, float scale) {
    double loss = 0;
    for (int i = 0; i < count; i++, logits += classes) {
        const double norm = log_sum(logits, classes);
        loss += norm - logits[labels[i]];
        for (int k = 0; k < classes; k++) {
            const double probability = std::exp(logits[k] - norm);
            logits[k] = static_cast<float>(scale * (probability - (k == labels[i] ? 1 : 0)));
        }
    }
    return loss;
}

Score softmax_score(const float* logits, const std::uint8_t* labels, int count, int classes) {
    Score score;
    for (int i = 0; i < count; i++, logits += classes) {
        score.loss += log_sum(logits, classes) - logits[labels[i]];
        if (!right(logits, labels[i], classes)) score.errors++;
    }
    return score;
}

void fill_normal(std::span<float> out, double deviation, std::uint64_t seed, std::uint32_t layer) {
    Stream stream(seed, layer, Purpose::init, 0);
    for (float& value : out) value = static_cast<float>(deviation * stream.normal());
}

}  // namespace rubato::learn
