// A second opinion on the models: plain loops in double, written from the description in network.hpp.
#pragma once

#include "learn/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rubato::learn::reference {

using Values = std::vector<double>;

/// Takes weights from the flat vector one after another.
struct Reader {
    const Values& weights;
    std::size_t at = 0;
    const double* take(std::size_t count) {
        at += count;
        return weights.data() + (at - count);
    }
};

inline Values dense(const Values& x, int outputs, Reader& reader) {
    const double* w = reader.take(x.size() * static_cast<std::size_t>(outputs));
    const double* b = reader.take(static_cast<std::size_t>(outputs));
    Values y(b, b + outputs);
    for (std::size_t k = 0; k < y.size(); k++)
        for (std::size_t i = 0; i < x.size(); i++) y[k] += w[k * x.size() + i] * x[i];
    return y;
}

inline void relu(Values& x) {
    for (double& value : x) value = std::max(value, 0.0);
}

/// x: [channels][height][width].
inline Values convolution(const Values& x, int channels, int height, int width, int outputs, Reader& reader) {
    const double* w = reader.take(static_cast<std::size_t>(outputs * channels * 25));
    const double* b = reader.take(static_cast<std::size_t>(outputs));
    Values y;
    for (int k = 0; k < outputs; k++)
        for (int row = 0; row < height; row++)
            for (int column = 0; column < width; column++) {
                double sum = b[k];
                for (int c = 0; c < channels; c++)
                    for (int i = std::max(0, 2 - row); i < std::min(5, height + 2 - row); i++)
                        for (int j = std::max(0, 2 - column); j < std::min(5, width + 2 - column); j++)
                            sum += w[((k * channels + c) * 5 + i) * 5 + j] *
                                   x[static_cast<std::size_t>((c * height + row + i - 2) * width + column + j - 2)];
                y.push_back(sum);
            }
    return y;
}

/// 3 x 3, stride 2, sizes rounded up; averages over the pixels inside the image. height, width: replaced.
inline Values pool(const Values& x, int channels, int& height, int& width, bool maximum) {
    const auto side = [](int n) { return static_cast<int>(std::ceil((n - 3) / 2.0)) + 1; };
    const int rows = side(height), columns = side(width);
    Values y;
    for (int c = 0; c < channels; c++)
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < columns; column++) {
                double largest = -INFINITY, sum = 0;
                int count = 0;
                for (int i = 2 * row; i < std::min(2 * row + 3, height); i++)
                    for (int j = 2 * column; j < std::min(2 * column + 3, width); j++) {
                        const double value = x[static_cast<std::size_t>((c * height + i) * width + j)];
                        largest = std::max(largest, value);
                        sum += value;
                        count++;
                    }
                y.push_back(maximum ? largest : sum / count);
            }
    height = rows;
    width = columns;
    return y;
}

inline double cross_entropy(const Values& logits, int label) {
    double sum = 0;
    for (double value : logits) sum += std::exp(value - logits[static_cast<std::size_t>(label)]);
    return std::log(sum);
}

inline double mlp_loss(const Values& weights, Values x, const std::vector<int>& hidden, int classes, int label) {
    Reader reader{weights};
    for (int width : hidden) {
        x = dense(x, width, reader);
        relu(x);
    }
    return cross_entropy(dense(x, classes, reader), label);
}

inline double cnn_loss(const Values& weights, Values x, ImageShape shape, int classes, int label) {
    Reader reader{weights};
    int channels = shape.channels, height = shape.height, width = shape.width;
    x = convolution(x, channels, height, width, 32, reader);
    x = pool(x, 32, height, width, true);
    relu(x);
    channels = 32;
    for (int outputs : {32, 64}) {
        x = convolution(x, channels, height, width, outputs, reader);
        relu(x);
        x = pool(x, outputs, height, width, false);
        channels = outputs;
    }
    return cross_entropy(dense(x, classes, reader), label);
}

}  // namespace rubato::learn::reference
