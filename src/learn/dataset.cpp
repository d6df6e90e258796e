#include "learn/dataset.hpp"

#include "learn/cifar.hpp"
#include "learn/error.hpp"
#include "learn/fetch.hpp"
#include "learn/idx.hpp"
#include "learn/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

namespace rubato::learn {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t samples_default = 60000;  // as MNIST

fs::path folder_of(const DataSpec& spec) {
    if (!spec.path.empty()) return spec.path;
    if (spec.dataset == "fashion-mnist") return "/usr/share/datasets/fashion-mnist";
    throw InputError(fmt::format("data.path: expected the folder of dataset {}, found none", spec.dataset));
}

fs::path need_idx(const DataSpec& spec, const char* part, const char* kind) {
    const fs::path folder = folder_of(spec);
    if (auto file = find_idx(folder, part, kind)) return *file;
    const char* hint = spec.path.empty() ? "; Debian's package dataset-fashion-mnist has it" : "";
    const int dimensions = kind[0] == 'i' ? 3 : 1;
    throw InputError(fmt::format("{}: expected an IDX file, also as {}-{}.idx{}-ubyte, raw or with .gz, found none{}",
                                 (folder / fmt::format("{}-{}-idx{}-ubyte", part, kind, dimensions)).string(), part,
                                 kind, dimensions, hint));
}

ImageShape shape_of(const IdxHeader& header) {
    return {header.rows, header.columns, 1};
}

Samples read_part(const DataSpec& spec, const char* part, ImageShape& shape) {
    const fs::path images_file = need_idx(spec, part, "images");
    const fs::path labels_file = need_idx(spec, part, "labels");
    IdxImages images = read_idx_images(images_file);
    shape = shape_of(images.header);
    return {std::move(images.pixels), read_idx_labels(labels_file, images.header.count, spec.classes)};
}

void read_idx_dataset(const DataSpec& spec, Dataset& data) {
    data.train = read_part(spec, "train", data.shape);
    const fs::path folder = folder_of(spec);
    const bool some_test = find_idx(folder, "t10k", "images") || find_idx(folder, "t10k", "labels");
    // A folder of one's own may do without test samples; half of them is a mistake.
    if (spec.dataset == "idx" && !some_test) return;
    ImageShape shape;
    data.test = read_part(spec, "t10k", shape);
    if (shape != data.shape)
        throw InputError(fmt::format("{}: expected images of {} x {} as in training, found {} x {}",
                                     need_idx(spec, "t10k", "images").string(), data.shape.height, data.shape.width,
                                     shape.height, shape.width));
}

/// Far beyond any use, and so far below 2^31 that products of a shape fit.
constexpr std::int64_t image_size_max = 1 << 26;

ImageShape synthetic_shape(const DataSpec& spec) {
    if (spec.shape.empty()) return {};
    if (spec.shape.size() != 3 || std::ranges::any_of(spec.shape, [](int side) { return side < 1 || side > 4096; }))
        throw InputError(
            fmt::format("data.shape: expected [height, width, channels], each 1 to 4096, found {}", list(spec.shape)));
    const std::int64_t size = std::int64_t{spec.shape[0]} * spec.shape[1] * spec.shape[2];
    if (size > image_size_max)
        throw InputError(fmt::format("data.shape: expected images of at most {} numbers, found {} with {}",
                                     image_size_max, list(spec.shape), size));
    return {spec.shape[0], spec.shape[1], spec.shape[2]};
}

/// Samples before the split of a dataset that no file describes.
std::int64_t count_of(const DataSpec& spec) {
    return spec.samples > 0 ? spec.samples : samples_default;
}

void check_spec(const DataSpec& spec) {
    const auto known = {"synthetic", "fashion-mnist", "idx", "cifar-10"};
    if (std::ranges::find(known, spec.dataset) == known.end())
        throw InputError(
            fmt::format("data.dataset: expected synthetic, fashion-mnist, idx or cifar-10, found {}", spec.dataset));
    if (spec.classes < 2 || spec.classes > 256)
        throw InputError(fmt::format("data.classes: expected 2 to 256, found {}", spec.classes));
    if (spec.samples > INT32_MAX || spec.test_samples > INT32_MAX || spec.samples < 0 || spec.test_samples < 0)
        throw InputError(fmt::format("data.samples: expected 0 to 2147483647, found {} and {} test samples",
                                     spec.samples, spec.test_samples));
}

void split(Dataset& data, double fraction, std::uint64_t seed) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(data.train.count()));
    std::iota(ids.begin(), ids.end(), 0);
    shuffle(ids, Stream(seed, 0, Purpose::split, 0));
    const auto middle = ids.begin() + validation_count(fraction, data.train.count());
    data.validation_ids.assign(ids.begin(), middle);
    data.training_ids.assign(middle, ids.end());
    std::ranges::sort(data.validation_ids);
    std::ranges::sort(data.training_ids);
}

void compute_mean(Dataset& data) {
    const auto size = static_cast<std::size_t>(data.shape.size());
    std::vector<std::int64_t> sums(size);
    for (std::int32_t id : data.training_ids) {
        const std::uint8_t* image = data.train.pixels.data() + static_cast<std::size_t>(id) * size;
        for (std::size_t p = 0; p < size; p++) sums[p] += image[p];
    }
    const double scale = 1 / (255.0 * static_cast<double>(data.training_ids.size()));
    for (std::size_t p = 0; p < size; p++) data.mean[p] = static_cast<float>(static_cast<double>(sums[p]) * scale);
}

}  // namespace

std::int64_t validation_count(double fraction, std::int64_t count) {
    const auto kept = static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(count)));
    if (!(fraction >= 0) || kept >= count)
        throw InputError(fmt::format("data.validation: expected at least one of {} samples left for training, found {}",
                                     count, fraction));
    return kept;
}

Dataset load_dataset(const DataSpec& spec, std::uint64_t seed) {
    check_spec(spec);
    Dataset data;
    data.classes = spec.classes;
    if (spec.dataset == "synthetic") {
        data.shape = synthetic_shape(spec);
        data.train = synthetic_samples(data.shape, spec.classes, count_of(spec), seed, 0);
        data.test = synthetic_samples(data.shape, spec.classes, spec.test_samples, seed, 1);
    } else if (spec.dataset == "cifar-10") {
        data.shape = cifar10_shape;
        data.classes = 10;
        Cifar10 read = read_cifar10(folder_of(spec), spec.samples);
        data.train = std::move(read.train);
        data.test = std::move(read.test);
    } else {
        read_idx_dataset(spec, data);
    }
    split(data, spec.validation, seed);
    data.mean.assign(static_cast<std::size_t>(data.shape.size()), 0.0f);
    if (spec.subtract_mean) compute_mean(data);
    return data;
}

DatasetSize dataset_size(const DataSpec& spec, bool real) {
    check_spec(spec);
    DatasetSize size;
    size.classes = spec.classes;
    size.samples = count_of(spec);
    if (spec.dataset == "synthetic") {
        size.shape = synthetic_shape(spec);
    } else if (spec.dataset == "cifar-10") {
        size.shape = cifar10_shape;
        size.classes = 10;
        // Timing alone needs no files, but those that are named are looked at.
        const bool needed = real || (!spec.path.empty() && spec.samples == 0);
        size.samples = needed ? count_cifar10(folder_of(spec), spec.samples)
                              : (spec.samples == 0 ? cifar10_samples : spec.samples);
    } else {
        // Timing alone does not need the files where the number of samples is given, or known as Fashion-MNIST's is.
        const bool folder = !spec.path.empty() || spec.dataset == "fashion-mnist";
        const bool needed = real || (spec.samples == 0 && (!spec.path.empty() || spec.dataset != "fashion-mnist"));
        if (needed || (folder && find_idx(folder_of(spec), "train", "images"))) {
            const IdxHeader header = read_idx_header(need_idx(spec, "train", "images"));
            size.shape = shape_of(header);
            if (real || spec.samples == 0) size.samples = header.count;
        }
    }
    size.samples -= validation_count(spec.validation, size.samples);
    return size;
}

void copy_images(const Dataset& data, const Samples& samples, std::span<const std::int32_t> ids, float* out) {
    const auto size = static_cast<std::size_t>(data.shape.size());
    const float* __restrict mean = data.mean.data();
    const auto image_of = [&](std::size_t i) {
        return samples.pixels.data() + static_cast<std::size_t>(ids[i]) * size;
    };
    for (std::size_t i = 0; i < ids.size(); i++) {
        const std::uint8_t* __restrict image = image_of(i);
        if (i + 1 < ids.size()) fetch(image_of(i + 1), size);  // they lie anywhere
        float* __restrict to = out;
        for (std::size_t p = 0; p < size; p++) to[p] = static_cast<float>(image[p]) * (1 / 255.0f) - mean[p];
        out += size;
    }
}

}  // namespace rubato::learn
