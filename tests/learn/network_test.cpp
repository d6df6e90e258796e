#include "learn/network.hpp"

#include "helpers.hpp"
#include "learn/random.hpp"
#include "reference.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace rubato::learn {
namespace {

struct Inputs {
    std::vector<float> images;
    std::vector<std::uint8_t> labels;
};

Inputs make_inputs(int count, int size, int classes) {
    Stream stream(7, 0, Purpose::synthetic, 0);
    Inputs inputs;
    for (int i = 0; i < count * size; i++) inputs.images.push_back(static_cast<float>(stream.normal()));
    for (int i = 0; i < count; i++)
        inputs.labels.push_back(static_cast<std::uint8_t>(stream.below(static_cast<std::uint64_t>(classes))));
    return inputs;
}

/// Weights with biases and last layer of a size at which everything matters.
std::vector<float> make_weights(const Network& network) {
    std::vector<float> weights(static_cast<std::size_t>(network.parameters()));
    network.initialize(weights, 3);
    Stream stream(8, 0, Purpose::init, 0);
    for (float& weight : weights) weight += static_cast<float>(0.02 * stream.normal());
    return weights;
}

/// Compares loss and gradient with the loss of `reference` in double, differentiated by central differences.
///
/// Differences in double with h = 1e-5 are exact to about 1e-9 unless a ReLU or a maximum switches within h, which
/// moves one of them by at most h times a slope. The float32 gradient carries the rounding of sums of up to some
/// thousand terms, about 1e-6 of the largest element: 1e-4 of the largest is far above both and far below any error
/// of a formula.
template <class Loss>
void check_gradient(const Network& network, int size, int classes, int count, const Loss& reference) {
    const Inputs inputs = make_inputs(count, size, classes);
    const auto weights = make_weights(network);
    std::vector<float> gradient(weights.size(), NAN);
    const auto scratch = network.scratch();
    const double loss =
        network.gradient(weights.data(), inputs.images.data(), inputs.labels.data(), count, gradient.data(), *scratch);
    const auto mean_loss = [&](const reference::Values& w) {
        double sum = 0;
        for (int i = 0; i < count; i++) {
            const auto first = inputs.images.begin() + i * size;
            sum += reference(w, reference::Values(first, first + size), inputs.labels[static_cast<std::size_t>(i)]);
        }
        return sum / count;
    };
    reference::Values w(weights.begin(), weights.end());
    CHECK(loss / count == doctest::Approx(mean_loss(w)).epsilon(1e-5));
    const Score score = network.score(weights.data(), inputs.images.data(), inputs.labels.data(), count, *scratch);
    CHECK(score.loss == doctest::Approx(loss).epsilon(1e-6));

    float largest = 0;
    for (float slope : gradient) largest = std::max(largest, std::abs(slope));
    // Every 61st weight up to 150 of them, and all of the last 20, biases of the last layer among them.
    std::vector<std::size_t> probes;
    const std::size_t stride = std::max<std::size_t>(w.size() / 150, 1) | 1;
    for (std::size_t i = 0; i < w.size(); i += stride) probes.push_back(i);
    for (std::size_t i = w.size() - 20; i < w.size(); i++) probes.push_back(i);
    for (std::size_t i : probes) {
        constexpr double h = 1e-5;
        const double middle = w[i];
        w[i] = middle + h;
        const double up = mean_loss(w);
        w[i] = middle - h;
        const double down = mean_loss(w);
        w[i] = middle;
        CAPTURE(i);
        CHECK(std::abs(gradient[i] - (up - down) / (2 * h)) < 1e-4 * largest);
    }
}

}  // namespace

TEST_CASE("softmax regression: gradient and loss agree with plain loops in double") {
    const auto network = make_dense(12, {}, 4);
    CHECK(network->parameters() == 12 * 4 + 4);
    check_gradient(*network, 12, 4, 5,
                   [](const auto& w, auto x, int label) { return reference::mlp_loss(w, x, {}, 4, label); });
}

TEST_CASE("mlp: gradient and loss agree with plain loops in double") {
    const auto network = make_dense(12, {9, 7}, 4);
    CHECK(network->parameters() == 12 * 9 + 9 + 9 * 7 + 7 + 7 * 4 + 4);
    for (int count : {1, 6})
        check_gradient(*network, 12, 4, count, [](const auto& w, auto x, int label) {
            return reference::mlp_loss(w, x, {9, 7}, 4, label);
        });
}

TEST_CASE("cnn: gradient and loss agree with plain loops in double") {
    // Sides whose pools round up, do not, and end in a window that leaves the image.
    for (const ImageShape shape : {ImageShape{8, 11, 1}, ImageShape{9, 10, 3}}) {
        const auto network = make_cnn(shape, 4, 1);
        check_gradient(*network, shape.size(), 4, 2,
                       [&](const auto& w, auto x, int label) { return reference::cnn_loss(w, x, shape, 4, label); });
    }
}

TEST_CASE("cnn: the sizes of Caffe's cifar10_full") {
    CHECK(make_cnn({32, 32, 3}, 10, 1)->parameters() == 89578);
    CHECK(make_cnn({28, 28, 1}, 10, 1)->parameters() == 832 + 25632 + 51264 + 5770);
    CHECK(make_cnn({32, 32, 3}, 10, 1)->flops_per_sample() ==
          doctest::Approx(2 * (3 * 12.3e6 - 2.46e6)).epsilon(0.001));
    CHECK(contains(error_of([] { make_cnn({7, 32, 3}, 10, 1); }), "at least 8 x 8 pixels, found 7 x 32"));
}

TEST_CASE("a batch longer than a slice has the mean of its parts' gradients") {
    const auto network = make_cnn({8, 8, 1}, 3, 1);
    const Inputs inputs = make_inputs(70, 64, 3);
    const auto weights = make_weights(*network);
    const auto scratch = network->scratch();
    std::vector<float> whole(weights.size()), part(weights.size());
    std::vector<double> mean(weights.size());
    const double loss =
        network->gradient(weights.data(), inputs.images.data(), inputs.labels.data(), 70, whole.data(), *scratch);
    double losses = 0;
    for (int i = 0; i < 70; i++) {
        losses += network->gradient(weights.data(), inputs.images.data() + 64 * i, inputs.labels.data() + i, 1,
                                    part.data(), *scratch);
        for (std::size_t k = 0; k < mean.size(); k++) mean[k] += part[k] / 70.0;
    }
    CHECK(loss == doctest::Approx(losses).epsilon(1e-6));
    double largest = 0, worst = 0;
    for (std::size_t k = 0; k < mean.size(); k++) {
        largest = std::max(largest, std::abs(mean[k]));
        worst = std::max(worst, std::abs(mean[k] - whole[k]));
    }
    CHECK(worst < 1e-5 * largest);
}

TEST_CASE("bits do not depend on where the vectors lie in memory, nor on what the scratch did before") {
    for (const auto& network : {make_cnn({12, 12, 1}, 10, 1), make_dense(144, {33}, 10), make_dense(144, {}, 10)}) {
        const auto weights = make_weights(*network);
        const std::size_t n = weights.size();
        for (int count : {1, 2, 37}) {
            const Inputs inputs = make_inputs(count, 144, 10);
            const auto fresh = network->scratch(), used = network->scratch();
            std::vector<float> expected(n), moved_weights(n + 3), moved_gradient(n + 5);
            const double loss = network->gradient(weights.data(), inputs.images.data(), inputs.labels.data(), count,
                                                  expected.data(), *fresh);
            std::ranges::copy(weights, moved_weights.begin() + 3);
            network->score(weights.data(), inputs.images.data(), inputs.labels.data(), 1, *used);
            network->gradient(weights.data(), inputs.images.data(), inputs.labels.data(), count, moved_gradient.data(),
                              *used);
            std::ranges::fill(moved_gradient, NAN);
            CHECK(loss == network->gradient(moved_weights.data() + 3, inputs.images.data(), inputs.labels.data(), count,
                                            moved_gradient.data() + 5, *used));
            CHECK(std::equal(expected.begin(), expected.end(), moved_gradient.begin() + 5));
        }
    }
}

TEST_CASE("the first weights are undecided and depend on the seed alone") {
    for (const auto& network : {make_cnn({28, 28, 1}, 10, 1), make_dense(784, {128}, 10)}) {
        std::vector<float> a(static_cast<std::size_t>(network->parameters())), b = a, c = a;
        network->initialize(a, 1);
        network->initialize(b, 1);
        network->initialize(c, 2);
        CHECK(a == b);
        CHECK(a != c);
        Inputs inputs = make_inputs(20, 784, 10);
        for (float& pixel : inputs.images) pixel *= 0.3f;  // the deviation of pixels in [0, 1]
        const Score score =
            network->score(a.data(), inputs.images.data(), inputs.labels.data(), 20, *network->scratch());
        CHECK(score.loss / 20 == doctest::Approx(std::log(10)).epsilon(0.1));
    }
}

TEST_CASE("a NaN is an error, never a lucky guess") {
    const std::uint8_t label = 0;
    const float undecided[] = {1, 1, 0}, broken[] = {NAN, NAN, NAN}, second[] = {1, 2, 0};
    CHECK(softmax_score(undecided, &label, 1, 3).errors == 0);
    CHECK(softmax_score(second, &label, 1, 3).errors == 1);
    CHECK(softmax_score(broken, &label, 1, 3).errors == 1);
    CHECK(std::isnan(softmax_score(broken, &label, 1, 3).loss));
    for (const auto& network : {make_cnn({12, 12, 1}, 10, 1), make_dense(144, {33}, 10)}) {
        const std::vector<float> weights(static_cast<std::size_t>(network->parameters()), NAN);
        const Inputs inputs = make_inputs(5, 144, 10);
        const Score score =
            network->score(weights.data(), inputs.images.data(), inputs.labels.data(), 5, *network->scratch());
        CHECK(score.errors == 5);
        CHECK(std::isnan(score.loss));
    }
}

}  // namespace rubato::learn
