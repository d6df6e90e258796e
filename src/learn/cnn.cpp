#include "learn/error.hpp"
#include "learn/network.hpp"
#include "learn/onednn_plan.hpp"

#include <fmt/format.h>
#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <map>

namespace rubato::learn {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixMap = Eigen::Map<Matrix>;
using ConstMatrixMap = Eigen::Map<const Matrix>;

// A batch is computed in slices, whose activations stay in the cache and whose memory does not grow with the batch.
constexpr int slice = 32;
constexpr int smallest_side = 8;

/// Plans by number of images (that of a full slice, and those of last slices), and the logits of one slice.
struct CnnScratch : Scratch {
    std::map<int, OneDnnPlan> plans;
    std::vector<float> logits;
};

class Cnn : public Network {
public:
    Cnn(ImageShape shape, int classes, int threads) : shape_(shape), classes_(classes), threads_(threads) {
        int channels = shape.channels, height = shape.height, width = shape.width;
        for (const auto& [out, max_pool] : {std::pair{32, true}, {32, false}, {64, false}}) {
            StageShape stage{channels, height, width, out, max_pool, pooled_side(height), pooled_side(width), 0, 0};
            stage.weights = parameters_;
            stage.biases = stage.weights + std::int64_t{25} * channels * out;
            parameters_ = stage.biases + out;
            stages_.push_back(stage);
            channels = out;
            height = stage.pooled_height;
            width = stage.pooled_width;
        }
        features_ = channels * height * width;
        matrix_ = parameters_;
        biases_ = matrix_ + std::int64_t{features_} * classes;
        parameters_ = biases_ + classes;
    }

    std::int64_t parameters() const override { return parameters_; }

    std::vector<std::int64_t> layers() const override {
        std::vector<std::int64_t> sizes;
        for (std::size_t i = 0; i < stages_.size(); ++i)
            sizes.push_back((i + 1 < stages_.size() ? stages_[i + 1].weights : matrix_) - stages_[i].weights);
        sizes.push_back(parameters_ - matrix_);
        return sizes;
    }

    double flops_per_sample() const override {
        double macs = 3.0 * features_ * classes_;
        for (const StageShape& stage : stages_) {
            const double passes = &stage == &stages_.front() ? 2 : 3;  // no gradient of the images
            macs += passes * 25.0 * stage.in_channels * stage.out_channels * stage.height * stage.width;
        }
        return 2 * macs;
    }

    /// He et al. 2015 in the first layer, small before the softmax, so that the first predictions are undecided. The
    /// convolutions between them are wider, with biases below zero, so that fewer units are active at a time: a feature
    /// that is nearly always on tells little, yet its mean is the direction of the largest curvature, along which stale
    /// gradients overshoot first.
    void initialize(std::span<float> weights, std::uint64_t seed) const override {
        std::ranges::fill(weights, 0.0f);
        const auto part = [&](std::int64_t first, std::int64_t end) {
            return weights.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
        };
        std::uint32_t layer = 0;
        for (const StageShape& stage : stages_) {
            const bool first = layer == 0;
            const double he = std::sqrt(2.0 / (25.0 * stage.in_channels));
            fill_normal(part(stage.weights, stage.biases), first ? he : 2 * he, seed, layer++);
            if (!first) std::ranges::fill(part(stage.biases, stage.biases + stage.out_channels), -0.4f);
        }
        fill_normal(part(matrix_, biases_), 0.02, seed, layer);
    }

    std::unique_ptr<Scratch> scratch() const override { return std::make_unique<CnnScratch>(); }

    double gradient(const float* weights, const float* images, const std::uint8_t* labels, int count, float* gradient,
                    Scratch& scratch) const override {
        const OneDnnThreads guard(threads_);
        auto& memory = static_cast<CnnScratch&>(scratch);
        double loss = 0;
        for (int first = 0; first < count; first += slice) {
            const int n = std::min(slice, count - first);
            OneDnnPlan& plan = plan_of(n, memory);
            const float* features = forward(plan, weights, images + std::int64_t{first} * shape_.size(), n, memory);
            float* slopes = memory.logits.data();
            loss += softmax_loss(slopes, labels + first, n, classes_, 1.0f / static_cast<float>(count));
            const ConstMatrixMap dy(slopes, n, classes_);
            const ConstMatrixMap x(features, n, features_);
            const ConstMatrixMap w(weights + matrix_, classes_, features_);
            MatrixMap dw(gradient + matrix_, classes_, features_);
            if (first == 0) {
                dw.noalias() = dy.transpose() * x;
                std::fill_n(gradient + biases_, classes_, 0.0f);
            } else {
                dw.noalias() += dy.transpose() * x;
            }
            for (int i = 0; i < n; i++)
                for (int k = 0; k < classes_; k++) gradient[biases_ + k] += slopes[i * classes_ + k];
            const bool last = first + slice >= count;
            if (last) scratch.tell(matrix_);
            MatrixMap(plan.feature_slopes(), n, features_).noalias() = dy * w;
            plan.backward(gradient, first > 0, [&](std::int64_t begin) {
                if (last) scratch.tell(begin);
            });
        }
        return loss;
    }

    Score score(const float* weights, const float* images, const std::uint8_t* labels, int count,
                Scratch& scratch) const override {
        const OneDnnThreads guard(threads_);
        auto& memory = static_cast<CnnScratch&>(scratch);
        Score score;
        for (int first = 0; first < count; first += slice) {
            const int n = std::min(slice, count - first);
            forward(plan_of(n, memory), weights, images + std::int64_t{first} * shape_.size(), n, memory);
            const Score part = softmax_score(memory.logits.data(), labels + first, n, classes_);
            score.loss += part.loss;
            score.errors += part.errors;
        }
        return score;
    }

private:
    OneDnnPlan& plan_of(int images, CnnScratch& memory) const {
        const auto found = memory.plans.find(images);
        if (found != memory.plans.end()) return found->second;
        return memory.plans.try_emplace(images, stages_, images).first->second;
    }

    /// Fills memory.logits; returns the features.
    const float* forward(OneDnnPlan& plan, const float* weights, const float* images, int n, CnnScratch& memory) const {
        const float* features = plan.forward(weights, images);
        memory.logits.resize(static_cast<std::size_t>(slice * classes_));
        const ConstMatrixMap x(features, n, features_);
        const ConstMatrixMap w(weights + matrix_, classes_, features_);
        MatrixMap(memory.logits.data(), n, classes_).noalias() = x * w.transpose();
        for (int i = 0; i < n; i++)
            for (int k = 0; k < classes_; k++)
                memory.logits[static_cast<std::size_t>(i * classes_ + k)] += weights[biases_ + k];
        return features;
    }

    ImageShape shape_;
    int classes_, threads_;
    std::vector<StageShape> stages_;
    int features_ = 0;
    std::int64_t matrix_ = 0, biases_ = 0;  ///< first elements of the last layer
    std::int64_t parameters_ = 0;
};

}  // namespace

std::unique_ptr<Network> make_cnn(ImageShape shape, int classes, int threads) {
    if (std::min(shape.height, shape.width) < smallest_side)
        throw InputError(fmt::format("model.name: cnn expects images of at least {0} x {0} pixels, found {1} x {2}",
                                     smallest_side, shape.height, shape.width));
    return std::make_unique<Cnn>(shape, classes, threads);
}

}  // namespace rubato::learn
