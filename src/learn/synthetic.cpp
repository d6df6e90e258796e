// A classification task that needs no files: each class has a smooth prototype image, each sample is the prototype of
// its class plus independent noise of every pixel.
#include "learn/dataset.hpp"
#include "learn/random.hpp"

#include <algorithm>
#include <cmath>

namespace rubato::learn {
namespace {

// Uniform noise of +-0.25 has a standard deviation sigma of 0.144. Prototypes are so strong that two of them lie
// 8 sigma apart whatever the number of pixels: the best classifier errs in 1e-4 of all cases, yet a model has to see
// some hundred samples a class before it gets there.
constexpr double noise = 0.25;
constexpr double distance_in_sigmas = 8;
constexpr std::uint32_t sample_roles = 1u << 16;  // roles below are classes

std::vector<float> prototype(ImageShape shape, std::uint32_t label, std::uint64_t seed) {
    Stream stream(seed, label, Purpose::synthetic, 0);
    std::vector<double> image;
    for (int c = 0; c < shape.channels; c++) {
        constexpr int waves = 4;
        double along_y[waves], along_x[waves], phase[waves];
        for (int k = 0; k < waves; k++) {
            along_y[k] = 2 * stream.uniform() / shape.height;
            along_x[k] = 2 * stream.uniform() / shape.width;
            phase[k] = stream.uniform();
        }
        for (int y = 0; y < shape.height; y++) {
            for (int x = 0; x < shape.width; x++) {
                double sum = 0;
                for (int k = 0; k < waves; k++) {
                    const double turns = along_y[k] * y + along_x[k] * x + phase[k];
                    sum += cos_sin_turns(turns - std::floor(turns))[0];
                }
                image.push_back(sum);
            }
        }
    }
    double squares = 0;
    for (double value : image) squares += value * value;
    const double sigma = noise / std::sqrt(3.0);
    // Two unrelated prototypes of length L are sqrt(2) L apart.
    const double scale = distance_in_sigmas * sigma / std::sqrt(2 * std::max(squares, 1e-9));
    std::vector<float> out;
    for (double value : image) out.push_back(static_cast<float>(255 * (0.5 + scale * value)));
    return out;
}

}  // namespace

Samples synthetic_samples(ImageShape shape, int classes, std::int64_t count, std::uint64_t seed, std::uint32_t part) {
    std::vector<std::vector<float>> prototypes;
    for (int k = 0; k < classes; k++) prototypes.push_back(prototype(shape, static_cast<std::uint32_t>(k), seed));
    const auto size = static_cast<std::size_t>(shape.size());
    constexpr float step = static_cast<float>(255 * 2 * noise / 255);  // noise of one unit of a random byte
    Samples out;
    out.pixels.resize(static_cast<std::size_t>(count) * size);
    out.labels.resize(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; i++) {
        const auto label = static_cast<std::size_t>(i % classes);
        out.labels[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(label);
        Stream stream(seed, sample_roles + part, Purpose::synthetic, static_cast<std::uint64_t>(i));
        std::uint8_t* image = out.pixels.data() + static_cast<std::size_t>(i) * size;
        std::uint64_t word = 0;
        for (std::size_t p = 0; p < size; p++) {
            word = p % 8 == 0 ? stream.bits() : word >> 8;
            const float value = prototypes[label][p] + step * (static_cast<float>(word & 0xff) - 127.5f) + 0.5f;
            image[p] = static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f));
        }
    }
    return out;
}

}  // namespace rubato::learn
