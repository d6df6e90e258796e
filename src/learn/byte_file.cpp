#include "learn/byte_file.hpp"

#include "learn/error.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rubato::learn {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t chunk = 16 << 20;

}  // namespace

void fail_input(const fs::path& file, const std::string& expected, const std::string& found) {
    throw InputError(fmt::format("{}: expected {}, found {}", file.string(), expected, found));
}

void ByteFile::Close::operator()(gzFile_s* file) const {
    gzclose(file);
}

ByteFile::ByteFile(const fs::path& path, const std::string& kind) : path_(path) {
    std::error_code error;
    const auto status = fs::status(path, error);
    if (!fs::exists(status)) fail_input(path, kind, "none");
    if (!fs::is_regular_file(status)) fail_input(path, kind, "something that is not a regular file");
    file_size_ = static_cast<std::int64_t>(fs::file_size(path, error));
    file_.reset(gzopen(path.c_str(), "rb"));
    if (file_ == nullptr) fail_input(path, "a readable file", std::strerror(errno));
    gzbuffer(file_.get(), 1 << 18);
    packed_ = gzdirect(file_.get()) == 0;
}

ByteFile::~ByteFile() = default;

std::int64_t ByteFile::read(std::uint8_t* out, std::int64_t count) {
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

std::vector<std::uint8_t> ByteFile::rest(std::int64_t count, const std::string& why) {
    const std::int64_t expected = position_ + count;
    if (!packed_ && file_size_ != expected) fail_size(expected, file_size_, why);
    // A header may say anything: packed data grow with what is really there.
    std::vector<std::uint8_t> data;
    while (static_cast<std::int64_t>(data.size()) < count) {
        const auto old = static_cast<std::int64_t>(data.size());
        const std::int64_t want = packed_ ? std::min(count - old, std::max(old, chunk)) : count;
        data.resize(static_cast<std::size_t>(old + want));
        if (read(data.data() + old, want) < want) fail_size(expected, position_, why);
    }
    std::uint8_t more = 0;
    if (read(&more, 1) > 0) fail_size(expected, packed_ ? -1 : file_size_, why);
    return data;
}

void ByteFile::check_stream(std::int64_t bytes) const {
    int code = Z_OK;
    const std::string text = gzerror(file_.get(), &code);
    if (code == Z_OK || code == Z_STREAM_END) return;
    if (code == Z_ERRNO) fail_input(path_, "a readable file", std::strerror(errno));
    fail_input(path_, "a whole gzip stream", fmt::format("{} bytes of data and then a damaged or cut one", bytes));
}

void ByteFile::fail_size(std::int64_t expected, std::int64_t found, const std::string& why) const {
    const char* unpacked = packed_ ? " after unpacking" : "";
    fail_input(path_, fmt::format("{} bytes{} {}", expected, unpacked, why),
               found < 0 ? std::string("more") : fmt::format("{} bytes", found));
}

}  // namespace rubato::learn
