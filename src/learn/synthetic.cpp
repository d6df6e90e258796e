// A classification task that needs no files. Each class has a smooth prototype pattern. A sample is a window of the
// prototype of its class, shifted by up to 1/14 of its sides, plus a weaker share of the pattern of another class, plus
// independent noise of every pixel.
#include "learn/dataset.hpp"
#include "learn/random.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::learn {
namespace {

constexpr float contrast = 0.2f;     // root mean square of a prototype, where a pixel's range is 1
constexpr float other_share = 0.8f;  // of the second pattern, at most: some samples are hard, none is hopeless
constexpr float noise = 0.25f;       // uniform, to either side
constexpr std::uint32_t sample_roles = 1u << 16;  // roles below are classes

/// How far a window may lie off the middle, either way: 2 pixels of 28.
int shift(int side) {
    return side / 14;
}

/// A pattern on a canvas that is larger than the images by the shift on each side: [channels][rows][columns].
struct Canvas {
    int rows, columns;
    std::vector<float> values;
};

Canvas prototype(ImageShape shape, std::uint32_t label, std::uint64_t seed) {
    Stream stream(seed, label, Purpose::synthetic, 0);
    Canvas canvas{shape.height + 2 * shift(shape.height), shape.width + 2 * shift(shape.width), {}};
    for (int c = 0; c < shape.channels; c++) {
        constexpr int waves = 4;
        double along_y[waves], along_x[waves], phase[waves];
        for (int k = 0; k < waves; k++) {
            along_y[k] = 2 * stream.uniform() / shape.height;
            along_x[k] = 2 * stream.uniform() / shape.width;
            phase[k] = stream.uniform();
        }
        for (int y = 0; y < canvas.rows; y++) {
            for (int x = 0; x < canvas.columns; x++) {
                double sum = 0;
                for (int k = 0; k < waves; k++) {
                    const double turns = along_y[k] * y + along_x[k] * x + phase[k];
                    sum += cos_sin_turns(turns - std::floor(turns))[0];
                }
                canvas.values.push_back(static_cast<float>(sum));
            }
        }
    }
    double squares = 0;
    for (float value : canvas.values) squares += double{value} * value;
    const double rms = std::sqrt(squares / static_cast<double>(canvas.values.size()));
    for (float& value : canvas.values) value *= static_cast<float>(contrast / std::max(rms, 1e-6));
    return canvas;
}

/// One image. The noise of a pixel is 8 bits of a random word.
void draw(ImageShape shape, const Canvas& own, const Canvas& other, Stream& stream, std::uint8_t* image) {
    const float share = other_share * static_cast<float>(stream.uniform());
    const auto rows_down = static_cast<int>(stream.below(static_cast<std::uint64_t>(own.rows - shape.height + 1)));
    const auto columns_right =
        static_cast<int>(stream.below(static_cast<std::uint64_t>(own.columns - shape.width + 1)));
    std::uint64_t word = 0;
    int drawn = 0;
    for (int c = 0; c < shape.channels; c++) {
        for (int y = 0; y < shape.height; y++) {
            const int first = (c * own.rows + y + rows_down) * own.columns + columns_right;
            const float* a = own.values.data() + first;
            const float* b = other.values.data() + first;
            for (int x = 0; x < shape.width; x++) {
                word = drawn++ % 8 == 0 ? stream.bits() : word >> 8;
                const float grain = noise * (static_cast<float>(word & 0xff) / 127.5f - 1);
                const float value = 255 * (0.5f + a[x] + share * b[x] + grain) + 0.5f;
                *image++ = static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f));
            }
        }
    }
}

}  // namespace

Samples synthetic_samples(ImageShape shape, int classes, std::int64_t count, std::uint64_t seed, std::uint32_t part) {
    std::vector<Canvas> prototypes;
    for (int k = 0; k < classes; k++) prototypes.push_back(prototype(shape, static_cast<std::uint32_t>(k), seed));
    const auto size = static_cast<std::size_t>(shape.size());
    Samples out;
    out.pixels.resize(static_cast<std::size_t>(count) * size);
    out.labels.resize(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < out.labels.size(); i++) {
        const std::size_t label = i % prototypes.size();
        out.labels[i] = static_cast<std::uint8_t>(label);
        Stream stream(seed, sample_roles + part, Purpose::synthetic, i);
        const std::size_t other = (label + 1 + stream.below(prototypes.size() - 1)) % prototypes.size();
        draw(shape, prototypes[label], prototypes[other], stream, out.pixels.data() + i * size);
    }
    return out;
}

}  // namespace rubato::learn
