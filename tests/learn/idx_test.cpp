#include "learn/idx.hpp"

#include "helpers.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <fstream>

namespace rubato::learn {
namespace {

namespace fs = std::filesystem;

fs::path data(const char* name) {
    return fs::path(LEARN_TEST_DATA) / name;
}

void write(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
}

std::string header(std::uint32_t magic, std::initializer_list<std::uint32_t> sizes) {
    std::string bytes;
    const auto put = [&](std::uint32_t word) {
        for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift & 0xff);
    };
    put(magic);
    for (std::uint32_t size : sizes) put(size);
    return bytes;
}

}  // namespace

TEST_CASE("raw and packed images are the same, whatever the file's name") {
    const IdxImages raw = read_idx_images(data("ok-images-idx3-ubyte"));
    CHECK(raw.header == IdxHeader{20, 28, 28});
    CHECK(raw.pixels.size() == 20 * 784);
    CHECK(raw.pixels[0] == 0x44);
    CHECK(raw.pixels[1] == 0x20);
    CHECK(read_idx_images(data("gz-images-idx3-ubyte.gz")).header == raw.header);
    CHECK(read_idx_images(data("gzipped_without_suffix-images-idx3-ubyte")).pixels == raw.pixels);
    CHECK(read_idx_header(data("gzipped_without_suffix-images-idx3-ubyte")) == raw.header);
    CHECK(read_idx_labels(data("ok-labels-idx1-ubyte"), 20, 10).size() == 20);
}

TEST_CASE("a bad image file is named with what was expected and found") {
    const auto read = [](const char* name) { return error_of([&] { read_idx_images(data(name)); }); };
    struct Row {
        const char *file, *expected, *found;
    };
    const Row rows[] = {
        {"trunc-images-idx3-ubyte", "expected 15696 bytes", "found 15012 bytes"},
        {"headeronly-images-idx3-ubyte", "expected an IDX header of 16 bytes", "found 10 bytes"},
        {"hugecount-images-idx3-ubyte", "expected 3367254359296 bytes", "found 15696 bytes"},
        {"littleendian-images-idx3-ubyte", "0x00000803", "little-endian"},
        {"ok-labels-idx1-ubyte", "0x00000803 (images)", "0x00000801 (a file of labels)"},
        {"no-such-file", "expected an IDX file", "found none"},
    };
    for (const Row& row : rows) {
        const std::string error = read(row.file);
        CAPTURE(error);
        CHECK(one_line(error));
        CHECK(contains(error, row.file));
        CHECK(contains(error, row.expected));
        CHECK(contains(error, row.found));
    }
}

TEST_CASE("a bad label file is named with what was expected and found") {
    const auto read = [](const char* name) { return error_of([&] { read_idx_labels(data(name), 20, 10); }); };
    CHECK(contains(read("badlabel-labels-idx1-ubyte"), "expected labels from 0 to 9, found 11 at sample"));
    CHECK(contains(read("short-labels-idx1-ubyte"), "expected 20 labels, one an image, found 19"));
    CHECK(contains(read("ok-images-idx3-ubyte"), "0x00000801 (labels), found 0x00000803 (a file of images)"));
    CHECK(read_idx_labels(data("badlabel-labels-idx1-ubyte"), 20, 12).size() == 20);
}

TEST_CASE("lengths that no header explains are refused, raw or packed") {
    const Folder folder;
    const fs::path file = folder.path / "images";
    const auto read = [&](const std::string& bytes) {
        write(file, bytes);
        return error_of([&] { read_idx_images(file); });
    };
    CHECK(read(header(0x803, {2, 2, 2}) + "12345678").empty());
    CHECK(
        contains(read(header(0x803, {2, 2, 2}) + "123456789"), "expected 24 bytes according to its header, found 25"));
    CHECK(contains(read(""), "found 0 bytes"));
    CHECK(contains(read("ab"), "found 2 bytes"));
    CHECK(contains(read(header(0x803, {0, 28, 28})), "at least one image"));
    CHECK(contains(read(header(0x803, {1, 0, 28})), "found 0 x 28"));
    CHECK(contains(read(header(0x803, {~0u, ~0u, ~0u})), "4096 pixels a side"));
    CHECK(contains(read(header(0xd03, {1, 1, 1}) + "1234"), "found 0x00000d03"));
    CHECK(contains(error_of([&] { read_idx_images(folder.path); }), "not a regular file"));

    const auto read_packed = [&](const std::string& bytes, std::size_t cut, bool damage) {
        const gzFile out = gzopen(file.c_str(), "wb");
        gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
        gzclose(out);
        std::ifstream in(file, std::ios::binary);
        std::string packed{std::istreambuf_iterator<char>(in), {}};
        packed.resize(packed.size() - cut);
        if (damage) packed[packed.size() - 6] ^= 1;  // a byte of the checksum
        return read(packed);
    };
    const std::string good = header(0x803, {2, 2, 2}) + "12345678";
    CHECK(read_packed(good, 0, false).empty());
    CHECK(contains(read_packed(good + "9", 0, false), "24 bytes after unpacking according to its header, found more"));
    CHECK(contains(read_packed(good.substr(0, 20), 0, false), "found 20 bytes"));
    CHECK(contains(read_packed(header(0x803, {~0u, 28, 28}), 0, false), "found 16 bytes"));
    CHECK(contains(read_packed(good, 4, false), "gzip stream"));
    CHECK(contains(read_packed(good, 0, true), "gzip stream"));
}

TEST_CASE("files are found under the names in use") {
    const Folder folder;
    CHECK(!find_idx(folder.path, "train", "images"));
    for (const char* name : {"train-images.idx3-ubyte.gz", "train-images.idx3-ubyte", "train-images-idx3-ubyte.gz",
                             "train-images-idx3-ubyte"}) {
        folder.put("ok-images-idx3-ubyte", name);
        CHECK(find_idx(folder.path, "train", "images") == folder.path / name);
    }
    CHECK(!find_idx(folder.path, "t10k", "images"));
    folder.put("ok-labels-idx1-ubyte", "t10k-labels-idx1-ubyte");
    CHECK(find_idx(folder.path, "t10k", "labels") == folder.path / "t10k-labels-idx1-ubyte");
}

}  // namespace rubato::learn
