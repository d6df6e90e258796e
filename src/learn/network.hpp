// A classifier as a function of a flat vector of weights; what the models of src/learn have in common.
#pragma once

#include "learn/dataset.hpp"
#include "learn/factors.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace rubato::learn {

/// Summed over samples, not averaged.
struct Score {
    double loss = 0;
    std::int64_t errors = 0;
};

/// Memory for the activations of one call at a time.
class Scratch {
public:
    virtual ~Scratch() = default;
    /// As Workspace::on_layers; null: nobody wants to know.
    const std::function<void(std::int64_t first)>* on_layers = nullptr;
    void tell(std::int64_t first) const {
        if (on_layers != nullptr && *on_layers) (*on_layers)(first);
    }
};

/// Immutable; const members may be called from several threads, each with its own scratch.
class Network {
public:
    virtual ~Network() = default;
    virtual std::int64_t parameters() const = 0;
    /// Parameters of each layer, in the order in which they lie in the weights.
    virtual std::vector<std::int64_t> layers() const = 0;
    /// Forward and backward.
    virtual double flops_per_sample() const = 0;
    virtual void initialize(std::span<float> weights, std::uint64_t seed) const = 0;
    virtual std::unique_ptr<Scratch> scratch() const = 0;

    /// Gradient of the mean cross-entropy over `count` >= 1 samples; returns the SUM of their losses.
    /// images: [count][channels][height][width]; labels: [count]; weights, gradient: [parameters].
    virtual double gradient(const float* weights, const float* images, const std::uint8_t* labels, int count,
                            float* gradient, Scratch& scratch) const = 0;

    /// Whether the gradient over so many samples is smaller as factors.
    virtual bool has_factors(int) const { return false; }
    /// As above, where it has: what they are multiplied out to has the same bits.
    virtual double gradient(const float*, const float*, const std::uint8_t*, int, Factors&, Scratch&) const {
        throw std::logic_error("a network without factors was asked for them");
    }

    /// Loss and errors of `count` >= 1 samples.
    virtual Score score(const float* weights, const float* images, const std::uint8_t* labels, int count,
                        Scratch& scratch) const = 0;
};

/// Fully connected layers of `hidden` rectified units and a softmax; no hidden layer: softmax regression. A layer is
/// its matrix [outputs][inputs] and its biases [outputs].
std::unique_ptr<Network> make_dense(int inputs, std::vector<int> hidden, int classes);

/// The convolutional network of Caffe's cifar10_full, without its two layers of local response normalization (they
/// cost more time than they gain accuracy, and have no parameters): 89,578 parameters on 32 x 32 x 3 images.
///
///     conv 5x5, 32 channels -> max pool -> ReLU -> conv 5x5, 32 -> ReLU -> average pool
///     -> conv 5x5, 64 -> ReLU -> average pool -> fully connected -> softmax
///
/// Convolutions pad by 2; pools are 3x3 with stride 2, rounding sizes up as Caffe does. A layer is its filters
/// [out][in][5][5] and its biases [out]; the last is [classes][channel, row, column] and biases [classes]. oneDNN runs
/// with `threads` threads; bits depend on their number. Throws InputError for images below 8 pixels a side.
std::unique_ptr<Network> make_cnn(ImageShape shape, int classes, int threads);

/// Softmax and cross-entropy. logits: [count][classes], replaced by scale * (probabilities - one-hot label), the
/// gradient of scale * the summed losses. Returns the sum.
double softmax_loss(float* logits, const std::uint8_t* labels, int count, int classes, float scale);

/// A sample counts as right where its label has the first of the largest logits; never with a NaN.
Score softmax_score(const float* logits, const std::uint8_t* labels, int count, int classes);

/// Normal with standard deviation `deviation` from stream (seed, layer, init, 0).
void fill_normal(std::span<float> out, double deviation, std::uint64_t seed, std::uint32_t layer);

}  // namespace rubato::learn
