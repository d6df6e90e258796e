#include "learn/idx.hpp"

#include "learn/error.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

namespace rubato::learn {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t images_magic = 0x00000803, labels_magic = 0x00000801;
constexpr std::int64_t chunk = 16 << 20;

[[noreturn]] void fail(const fs::path& file, const std::string& expected, const std::string& found) {
    throw InputError(fmt::format("{}: expected {}, found {}", file.string(), expected, found));
}

/// A file of bytes, unpacked where it begins with the magic of gzip.
class ByteFile {
public:
    explicit ByteFile(const fs::path& path) : path_(path) {
        std::error_code error;
        const auto status = fs::status(path, error);
        if (!fs::exists(status)) fail(path, "an IDX file", "none");
        if (!fs::is_regular_file(status)) fail(path, "an IDX file", "something that is not a regular file");
        file_size_ = static_cast<std::int64_t>(fs::file_size(path, error));
        file_.reset(gzopen(path.c_str(), "rb"));
        if (file_ == nullptr) fail(path, "a readable file", std::strerror(errno));
        gzbuffer(file_.get(), 1 << 18);
        packed_ = gzdirect(file_.get()) == 0;
    }

    bool packed() const { return packed_; }

    /// Reads up to `count` bytes; fewer at the end of the data only.
    std::int64_t read(std::uint8_t* out, std::int64_t count) {
        std::int64_t done = 0;
        while (done < count) {
            const auto want = static_cast<unsigned>(std::min(count - done, chunk));
            const int got = gzread(file_.get(), out + done, want);
            if (got > 0) done += got;
            if (got < static_cast<int>(want)) {
                check_stream(position_ + done);
                break;
            }
        }
        position_ += done;
        return done;
    }

    /// Reads the `count` bytes that remain according to the header, and nothing may remain after them.
    std::vector<std::uint8_t> rest(std::int64_t count) {
        const std::int64_t expected = position_ + count;
        if (!packed_ && file_size_ != expected) fail_size(expected, file_size_);
        // A header may say anything: packed data grow with what is really there.
        std::vector<std::uint8_t> data;
        while (static_cast<std::int64_t>(data.size()) < count) {
            const auto old = static_cast<std::int64_t>(data.size());
            const std::int64_t want = packed_ ? std::min(count - old, std::max(old, chunk)) : count;
            data.resize(static_cast<std::size_t>(old + want));
            if (read(data.data() + old, want) < want) fail_size(expected, position_);
        }
        std::uint8_t more = 0;
        if (read(&more, 1) > 0) fail_size(expected, packed_ ? -1 : file_size_);
        return data;
    }

private:
    struct Close {
        void operator()(gzFile file) const { gzclose(file); }
    };

    void check_stream(std::int64_t bytes) const {
        int code = Z_OK;
        const std::string text = gzerror(file_.get(), &code);
        if (code == Z_OK || code == Z_STREAM_END) return;
        if (code == Z_ERRNO) fail(path_, "a readable file", std::strerror(errno));
        fail(path_, "a whole gzip stream", fmt::format("{} bytes of data and then a damaged or cut one", bytes));
    }

    [[noreturn]] void fail_size(std::int64_t expected, std::int64_t found) const {
        const char* unpacked = packed_ ? " after unpacking" : "";
        fail(path_, fmt::format("{} bytes{} according to its header", expected, unpacked),
             found < 0 ? std::string("more") : fmt::format("{} bytes", found));
    }

    fs::path path_;
    std::unique_ptr<gzFile_s, Close> file_;
    std::int64_t file_size_ = 0;
    std::int64_t position_ = 0;
    bool packed_ = false;
};

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
        fail(file, fmt::format("IDX magic 0x{:08x}{}", magic, magic == images_magic ? " (images)" : " (labels)"),
             describe(big_endian(raw)));
    if (got < length) fail(file, fmt::format("an IDX header of {} bytes", length), fmt::format("{} bytes", got));
    std::vector<std::uint32_t> sizes;
    for (std::size_t d = 0; d < dimensions; d++) sizes.push_back(big_endian(raw + 4 + 4 * d));
    return sizes;
}

IdxHeader read_image_header(ByteFile& bytes, const fs::path& file) {
    const auto sizes = read_header(bytes, file, images_magic);
    constexpr std::uint32_t side_max = 4096;  // far beyond any such dataset; keeps the product within 64 bits
    if (std::min(sizes[1], sizes[2]) < 1 || std::max(sizes[1], sizes[2]) > side_max)
        fail(file, fmt::format("images of 1 to {} pixels a side", side_max),
             fmt::format("{} x {}", sizes[1], sizes[2]));
    if (sizes[0] == 0) fail(file, "at least one image", "0");
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
    ByteFile bytes(file);
    return read_image_header(bytes, file);
}

IdxImages read_idx_images(const fs::path& file) {
    ByteFile bytes(file);
    IdxImages images;
    images.header = read_image_header(bytes, file);
    images.pixels = bytes.rest(images.header.count * images.header.rows * images.header.columns);
    // Samples are numbered with 32 bits.
    if (images.header.count > std::numeric_limits<std::int32_t>::max())
        fail(file, "at most 2147483647 images", std::to_string(images.header.count));
    return images;
}

std::vector<std::uint8_t> read_idx_labels(const fs::path& file, std::int64_t count, int classes) {
    ByteFile bytes(file);
    const std::int64_t found = read_header(bytes, file, labels_magic)[0];
    auto labels = bytes.rest(found);
    if (found != count) fail(file, fmt::format("{} labels, one an image", count), std::to_string(found));
    const auto bad = std::ranges::find_if(labels, [&](std::uint8_t label) { return label >= classes; });
    if (bad != labels.end())
        fail(file, fmt::format("labels from 0 to {}", classes - 1),
             fmt::format("{} at sample {}", int{*bad}, bad - labels.begin()));
    return labels;
}

}  // namespace rubato::learn
