#include "learn/network.hpp"

#include <Eigen/Core>

#include <cmath>

namespace rubato::learn {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixMap = Eigen::Map<Matrix>;
using ConstMatrixMap = Eigen::Map<const Matrix>;

struct Layer {
    int inputs, outputs;
    std::int64_t weights, biases;  // first elements in the flat vector
};

/// activations[l]: output of layer l, [count][outputs]; slopes: gradients of two neighbouring layers' outputs.
struct DenseScratch : Scratch {
    std::vector<std::vector<float>> activations;
    std::vector<float> slopes[2];
    Factors factors;
    int capacity = 0;
};

class Dense : public Network {
public:
    Dense(int inputs, const std::vector<int>& hidden, int classes) : classes_(classes) {
        std::vector<int> outputs = hidden;
        outputs.push_back(classes);
        for (int width : outputs) {
            const std::int64_t matrix = std::int64_t{inputs} * width;
            layers_.push_back({inputs, width, parameters_, parameters_ + matrix});
            parameters_ += matrix + width;
            widest_ = std::max(widest_, width);
            inputs = width;
        }
    }

    std::int64_t parameters() const override { return parameters_; }

    std::vector<std::int64_t> layers() const override {
        std::vector<std::int64_t> sizes;
        for (const Layer& layer : layers_) sizes.push_back(layer.biases + layer.outputs - layer.weights);
        return sizes;
    }

    double flops_per_sample() const override {
        double macs = 0;
        for (const Layer& layer : layers_) macs += 3.0 * layer.inputs * layer.outputs;
        return 2 * (macs - double{1} * layers_[0].inputs * layers_[0].outputs);  // no gradient of the images
    }

    /// He et al. 2015 before a ReLU; small before the softmax, so that the first predictions are undecided.
    void initialize(std::span<float> weights, std::uint64_t seed) const override {
        std::ranges::fill(weights, 0.0f);
        for (std::size_t l = 0; l < layers_.size(); l++) {
            const Layer& layer = layers_[l];
            const bool last = l + 1 == layers_.size();
            const auto size = static_cast<std::size_t>(layer.biases - layer.weights);
            fill_normal(weights.subspan(static_cast<std::size_t>(layer.weights), size),
                        last ? 0.01 : std::sqrt(2.0 / layer.inputs), seed, static_cast<std::uint32_t>(l));
        }
    }

    std::unique_ptr<Scratch> scratch() const override { return std::make_unique<DenseScratch>(); }

    double gradient(const float* weights, const float* images, const std::uint8_t* labels, int count, float* gradient,
                    Scratch& scratch) const override {
        auto& memory = static_cast<DenseScratch&>(scratch);
        const Layer& first = layers_.front();
        double loss = 0;
        const float* slope = backward(weights, images, labels, count, gradient + first.biases, memory, loss);
        if (has_factors(count)) {
            memory.factors.set(slope, images, count, first.outputs, first.inputs);
            memory.factors.multiply_out(0, static_cast<std::size_t>(first.biases), gradient);
        } else {
            outer_product(slope, images, count, first, gradient);
        }
        return loss;
    }

    bool has_factors(int count) const override {
        return Factors::pay(count, layers_.front().outputs, layers_.front().inputs);
    }
    double gradient(const float* weights, const float* images, const std::uint8_t* labels, int count, Factors& factors,
                    Scratch& scratch) const override {
        const Layer& first = layers_.front();
        const auto rest = factors.rest(static_cast<std::size_t>(parameters_ - first.biases));
        double loss = 0;
        const float* slope =
            backward(weights, images, labels, count, rest.data(), static_cast<DenseScratch&>(scratch), loss);
        factors.set(slope, images, count, first.outputs, first.inputs);
        return loss;
    }

    Score score(const float* weights, const float* images, const std::uint8_t* labels, int count,
                Scratch& scratch) const override {
        auto& memory = static_cast<DenseScratch&>(scratch);
        forward(weights, images, count, memory);
        return softmax_score(memory.activations.back().data(), labels, count, classes_);
    }

private:
    /// All of the gradient but the matrix of the first layer: the elements behind it. Returns the slope of that layer's
    /// outputs, [count][outputs].
    const float* backward(const float* weights, const float* images, const std::uint8_t* labels, int count,
                          float* behind, DenseScratch& memory, double& loss) const {
        forward(weights, images, count, memory);
        float* slope = memory.activations.back().data();
        loss = softmax_loss(slope, labels, count, classes_, 1.0f / static_cast<float>(count));
        const std::int64_t first = layers_.front().biases;
        for (std::size_t l = layers_.size() - 1; l > 0; l--) {
            const Layer& layer = layers_[l];
            const float* input = memory.activations[l - 1].data();
            outer_product(slope, input, count, layer, behind + layer.weights - first);
            sum_rows(slope, count, layer.outputs, behind + layer.biases - first);
            memory.tell(layer.weights);
            float* below = memory.slopes[l % 2].data();
            const ConstMatrixMap dy(slope, count, layer.outputs);
            const ConstMatrixMap w(weights + layer.weights, layer.outputs, layer.inputs);
            MatrixMap(below, count, layer.inputs).noalias() = dy * w;
            for (std::int64_t i = 0; i < std::int64_t{count} * layer.inputs; i++)
                below[i] = input[i] > 0 ? below[i] : 0;
            slope = below;
        }
        sum_rows(slope, count, layers_.front().outputs, behind);
        return slope;
    }

    static void outer_product(const float* slope, const float* input, int count, const Layer& layer, float* out) {
        const ConstMatrixMap dy(slope, count, layer.outputs);
        const ConstMatrixMap x(input, count, layer.inputs);
        MatrixMap(out, layer.outputs, layer.inputs).noalias() = dy.transpose() * x;
    }

    void reserve(int count, DenseScratch& memory) const {
        if (count <= memory.capacity) return;
        memory.capacity = count;
        memory.activations.resize(layers_.size());
        const auto rows = static_cast<std::size_t>(count);
        for (std::size_t l = 0; l < layers_.size(); l++)
            memory.activations[l].resize(rows * static_cast<std::size_t>(layers_[l].outputs));
        for (auto& slope : memory.slopes) slope.resize(rows * static_cast<std::size_t>(widest_));
    }

    void forward(const float* weights, const float* images, int count, DenseScratch& memory) const {
        reserve(count, memory);
        const float* input = images;
        for (std::size_t l = 0; l < layers_.size(); l++) {
            const Layer& layer = layers_[l];
            float* output = memory.activations[l].data();
            const ConstMatrixMap x(input, count, layer.inputs);
            const ConstMatrixMap w(weights + layer.weights, layer.outputs, layer.inputs);
            MatrixMap(output, count, layer.outputs).noalias() = x * w.transpose();
            const float* bias = weights + layer.biases;
            const bool last = l + 1 == layers_.size();
            for (int i = 0; i < count; i++, output += layer.outputs)
                for (int k = 0; k < layer.outputs; k++) {
                    const float value = output[k] + bias[k];
                    output[k] = last || value > 0 || value != value ? value : 0;  // NaN stays NaN
                }
            input = memory.activations[l].data();
        }
    }

    static void sum_rows(const float* matrix, int rows, int columns, float* out) {
        std::fill_n(out, columns, 0.0f);
        for (int i = 0; i < rows; i++, matrix += columns)
            for (int k = 0; k < columns; k++) out[k] += matrix[k];
    }

    int classes_;
    int widest_ = 0;
    std::int64_t parameters_ = 0;
    std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Network> make_dense(int inputs, std::vector<int> hidden, int classes) {
    return std::make_unique<Dense>(inputs, hidden, classes);
}

}  // namespace rubato::learn
