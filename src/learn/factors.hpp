// A gradient that is not multiplied out.
//
// The gradient of a dense layer's matrix is a product of what came back to its outputs and what went into it, slope^T *
// input. As long as a batch is small, these two are a fraction of its elements. They are multiplied out where an update
// reads them: a plain step is what the product's kernel writes, and for any other rule a few rows at a time are in the
// nearest cache. The gradient never goes through the others.
#pragma once

#include "learn/aligned.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace rubato::learn {

/// The product of the first layer, which is by far the largest, and the elements of the others as they are.
class Factors {
public:
    /// Batches of more samples are no factors: the product goes over all samples in one piece, in the nearest cache.
    static constexpr int most_samples = 256;
    /// Whether the factors are smaller than what they are of.
    static bool pay(int count, int outputs, int inputs) {
        return count <= most_samples &&
               double{1} * count * (double{1} * outputs + inputs) < double{1} * outputs * inputs;
    }

    /// slope: [count][outputs], input: [count][inputs]; they are copied.
    void set(const float* slope, const float* input, int count, int outputs, int inputs);
    /// The elements behind the matrix, [size], to be filled in.
    std::span<float> rest(std::size_t size) {
        rest_.resize(size);
        return rest_;
    }

    /// Elements of the gradient.
    std::size_t size() const { return matrix() + rest_.size(); }
    /// Elements of the pieces in which the matrix is multiplied out, but for the last one.
    std::size_t piece() const { return static_cast<std::size_t>(rows_) * static_cast<std::size_t>(inputs_); }
    /// Where the piece ends that begins with element `first`; behind the matrix pieces begin anywhere.
    std::size_t end_of_piece(std::size_t first) const;
    /// out[i] = element first + i, [n]; where they are of the matrix, whole pieces. The same bits in whatever order.
    void multiply_out(std::size_t first, std::size_t n, float* out) const;

    /// to = from - rate * gradient, elements [first, first + n) of vectors of size(), which are the same or apart: the
    /// bits of descend_plainly (optimizer.hpp), without a gradient in memory. Where they are of the matrix, whole
    /// pieces.
    void descend(float* to, const float* from, float rate, std::size_t first, std::size_t n) const;

private:
    std::size_t matrix() const { return static_cast<std::size_t>(outputs_) * static_cast<std::size_t>(inputs_); }

    int count_ = 0, outputs_ = 0, inputs_ = 0;
    int rows_ = 0;                 ///< of a piece
    AlignedFloats slope_, input_;  ///< in the order in which Eigen's kernel reads them
    std::size_t slope_size_ = 0, input_size_ = 0;
    std::vector<float> rest_;
};

}  // namespace rubato::learn
