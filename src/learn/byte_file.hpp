// A file of bytes behind every reader of data sets: raw, or gzip whatever the name says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct gzFile_s;

namespace rubato::learn {

/// Throws InputError: "FILE: expected EXPECTED, found FOUND".
[[noreturn]] void fail_input(const std::filesystem::path& file, const std::string& expected, const std::string& found);

/// A file of bytes, unpacked where it begins with the magic of gzip (1f8b).
class ByteFile {
public:
    /// `kind` is what the messages call it, such as "an IDX file". Throws InputError where it cannot be opened.
    ByteFile(const std::filesystem::path& path, const std::string& kind);
    ~ByteFile();
    ByteFile(const ByteFile&) = delete;
    ByteFile& operator=(const ByteFile&) = delete;

    bool packed() const { return packed_; }
    /// Bytes of the file as it lies there, packed or not.
    std::int64_t file_size() const { return file_size_; }
    /// Bytes of data read so far.
    std::int64_t position() const { return position_; }

    /// Reads up to `count` bytes; fewer at the end of the data only. Throws InputError for a damaged gzip stream.
    std::int64_t read(std::uint8_t* out, std::int64_t count);

    /// Reads the `count` bytes that remain; nothing may remain after them. `why` ends the message of a wrong size, such
    /// as "according to its header". Allocates no more than the file really holds, whatever `count` is.
    std::vector<std::uint8_t> rest(std::int64_t count, const std::string& why);

private:
    struct Close {
        void operator()(gzFile_s* file) const;
    };

    void check_stream(std::int64_t bytes) const;
    [[noreturn]] void fail_size(std::int64_t expected, std::int64_t found, const std::string& why) const;

    std::filesystem::path path_;
    std::unique_ptr<gzFile_s, Close> file_;
    std::int64_t file_size_ = 0;
    std::int64_t position_ = 0;
    bool packed_ = false;
};

}  // namespace rubato::learn
