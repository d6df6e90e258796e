// Images with labels: read from files or made up, split into training, validation and test samples.
#pragma once

#include "core/scenario.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace rubato::learn {

struct ImageShape {
    int height = 28, width = 28, channels = 1;
    int size() const { return height * width * channels; }
    bool operator==(const ImageShape&) const = default;
};

/// pixels: [count][channels][height][width], 0..255, channels of CIFAR-10 in the order red, green, blue: a quarter of
/// the memory of float32, and every dataset at hand has 8 bits a pixel. labels: [count].
struct Samples {
    std::vector<std::uint8_t> pixels;
    std::vector<std::uint8_t> labels;
    std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

struct Dataset {
    ImageShape shape;
    int classes = 10;
    Samples train;                             ///< training and validation samples
    Samples test;                              ///< may be empty
    std::vector<std::int32_t> training_ids;    ///< samples of `train`, ascending
    std::vector<std::int32_t> validation_ids;  ///< the others, ascending
    std::vector<float> mean;                   ///< [shape.size()] of the training samples, or zeros
};

/// Samples, shape and classes, without the data.
struct DatasetSize {
    std::int64_t samples = 0;  ///< of an epoch: validation samples left out
    ImageShape shape;
    int classes = 10;
};

/// Samples kept for validation: round(fraction * count). Throws InputError unless at least one is left for training.
std::int64_t validation_count(double fraction, std::int64_t count);

/// Reads or makes the dataset of `spec`; split and synthetic samples are pure functions of `seed` (seeds.data).
/// Throws InputError where files are missing or broken.
Dataset load_dataset(const DataSpec& spec, std::uint64_t seed);

/// What load_dataset would give, from the header of the image file at most. A timing-only run (`real` false) takes
/// `spec.samples` where it is set, and needs no files of a dataset whose size is known.
DatasetSize dataset_size(const DataSpec& spec, bool real);

/// out: [ids.size()][shape.size()], pixels scaled to [0, 1] less the mean. samples: train or test of `data`.
void copy_images(const Dataset& data, const Samples& samples, std::span<const std::int32_t> ids, float* out);

/// Patterns of classes, mixed and with noise (synthetic.cpp); part: 0 train, 1 test. classes >= 2. Sample i depends on
/// the seed, the part, i, shape and classes alone.
Samples synthetic_samples(ImageShape shape, int classes, std::int64_t count, std::uint64_t seed, std::uint32_t part);

}  // namespace rubato::learn
