// Reader of the binary version of CIFAR-10 (Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html).
//
// A record is a label byte and 3072 pixels: 32 x 32 of red, then of green, then of blue, each row by row. That is the
// [channels][height][width] of Samples, with channels red, green, blue.
#pragma once

#include "learn/dataset.hpp"

#include <cstdint>
#include <filesystem>

namespace rubato::learn {

constexpr ImageShape cifar10_shape{32, 32, 3};
constexpr std::int64_t cifar10_samples = 50000;

/// The five training files, data_batch_1.bin to data_batch_5.bin, and the test file, test_batch.bin, in `folder` or in
/// its subfolder cifar-10-batches-bin; raw, or gzip with .bin.gz or even without. All of them must be there.
///
/// `samples` is the number of training images that the five files of a cut set hold together, the test file being as
/// large as it likes; 0: CIFAR-10 itself, 10,000 images in each of the six. Throws InputError (file, expected and found
/// size) for anything else: another number, sizes that are no multiple of a record, labels above 9 (with the number of
/// the record, from 0). Sizes are checked before anything is allocated.
struct Cifar10 {
    Samples train;
    Samples test;
};
Cifar10 read_cifar10(const std::filesystem::path& folder, std::int64_t samples);

/// Training images of the folder, by the sizes of its files where these are as they should be. Throws InputError as
/// read_cifar10.
std::int64_t count_cifar10(const std::filesystem::path& folder, std::int64_t samples);

}  // namespace rubato::learn
