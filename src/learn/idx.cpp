#include "learn/idx.hpp"

#include "learn/byte_file.hpp"
#include "learn/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

namespace rubato::learn {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t images_magic = 0x00000803, labels_magic = 0x00000801;
constexpr const char* idx_file = "an IDX file";

std::uint32_t big_endian(const std::uint8_t* bytes) {
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

std::string describe(std::uint32_t magic) {
    std::string what;
    if (magic == images_magic) what = " (a file of images)";
    if (magic == labels_magic) what = " (a file of labels)";
    if (magic == 0x03080000 || magic == 0x01080000) what = " (a little-endian header; IDX is big-endian)";
    if (magic >> 16 == 0x1f8b) what = " (gzip within gzip)";
    return fmt::format("0x{:08x}{}", magic, what);
}

/// Reads and checks the magic number and the `dimensions` sizes after it.
std::vector<std::uint32_t> read_header(ByteFile& bytes, const fs::path& file, std::uint32_t magic) {
    const std::size_t dimensions = magic & 0xff;
    std::uint8_t raw[16] = {};
    const auto length = static_cast<std::int64_t>(4 + 4 * dimensions);
    const std::int64_t got = bytes.read(raw, length);
    if (got >= 4 && big_endian(raw) != magic)
        fail_input(file, fmt::format("IDX magic 0x{:08x}{}", magic, magic == images_magic ? " (images)" : " (labels)"),
                   describe(big_endian(raw)));
    if (got < length) fail_input(file, fmt::format("an IDX header of {} bytes", length), fmt::format("{} bytes", got));
    std::vector<std::uint32_t> sizes;
    for (std::size_t d = 0; d < dimensions; d++) sizes.push_back(big_endian(raw + 4 + 4 * d));
    return sizes;
}

IdxHeader read_image_header(ByteFile& bytes, const fs::path& file) {
    const auto sizes = read_header(bytes, file, images_magic);
    constexpr std::uint32_t side_max = 4096;  // far beyond any such dataset; keeps the product within 64 bits
    if (std::min(sizes[1], sizes[2]) < 1 || std::max(sizes[1], sizes[2]) > side_max)
        fail_input(file, fmt::format("images of 1 to {} pixels a side", side_max),
                   fmt::format("{} x {}", sizes[1], sizes[2]));
    if (sizes[0] == 0) fail_input(file, "at least one image", "0");
    return {sizes[0], static_cast<int>(sizes[1]), static_cast<int>(sizes[2])};
}

}  // namespace

std::optional<fs::path> find_idx(const fs::path& folder, std::string_view part, std::string_view kind) {
    const std::string dimensions = kind == "images" ? "3" : "1";
    for (const char* separator : {"-", "."}) {
        for (const char* suffix : {"", ".gz"}) {
            fs::path file = folder / fmt::format("{}-{}{}idx{}-ubyte{}", part, kind, separator, dimensions, suffix);
            std::error_code error;
            if (fs::exists(file, error)) return file;
        }
    }
    return std::nullopt;
}

IdxHeader read_idx_header(const fs::path& file) {
    ByteFile bytes(file, idx_file);
    return read_image_header(bytes, file);
}

IdxImages read_idx_images(const fs::path& file) {
    ByteFile bytes(file, idx_file);
    IdxImages images;
    images.header = read_image_header(bytes, file);
    const std::int64_t size = images.header.count * images.header.rows * images.header.columns;
    images.pixels = bytes.rest(size, "according to its header");
    // Samples are numbered with 32 bits.
    if (images.header.count > std::numeric_limits<std::int32_t>::max())
        fail_input(file, "at most 2147483647 images", std::to_string(images.header.count));
    return images;
}

std::vector<std::uint8_t> read_idx_labels(const fs::path& file, std::int64_t count, int classes) {
    ByteFile bytes(file, idx_file);
    const std::int64_t found = read_header(bytes, file, labels_magic)[0];
    auto labels = bytes.rest(found, "according to its header");
    if (found != count) fail_input(file, fmt::format("{} labels, one an image", count), std::to_string(found));
    const auto bad = std::ranges::find_if(labels, [&](std::uint8_t label) { return label >= classes; });
    if (bad != labels.end())
        fail_input(file, fmt::format("labels from 0 to {}", classes - 1),
                   fmt::format("{} at sample {}", int{*bad}, bad - labels.begin()));
    return labels;
}

}  // namespace rubato::learn
