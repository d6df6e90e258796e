// Reader of IDX files, the format of MNIST and its relatives: raw, or gzip whatever the name says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace rubato::learn {

/// What the header of an image file says.
struct IdxHeader {
    std::int64_t count = 0;
    int rows = 0;
    int columns = 0;
    bool operator==(const IdxHeader&) const = default;
};

/// pixels: [count][rows][columns], 0..255.
struct IdxImages {
    IdxHeader header;
    std::vector<std::uint8_t> pixels;
};

/// The file of `folder` that holds a part of an IDX dataset: PART-images-idx3-ubyte or PART-images.idx3-ubyte (labels:
/// idx1), each also with .gz. part: "train" | "t10k"; kind: "images" | "labels".
std::optional<std::filesystem::path> find_idx(const std::filesystem::path& folder, std::string_view part,
                                              std::string_view kind);

/// Reads the header alone. Throws InputError.
IdxHeader read_idx_header(const std::filesystem::path& file);

/// Throws InputError where the file is not an image file of exactly the length that its header says. Allocates no more
/// than the file really holds, whatever the header says.
IdxImages read_idx_images(const std::filesystem::path& file);

/// [count] labels, each below `classes`. Throws InputError, also where there are not `count` of them.
std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& file, std::int64_t count, int classes);

}  // namespace rubato::learn
