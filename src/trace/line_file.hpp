// A text file that is written in whole lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rubato::trace {

/// Buffers whole lines and hands them to the kernel in one write(2), at most 64 KiB at a time unless one line is
/// longer: whenever the process is killed, at most the last line of the file is broken. After an error the file ends in
/// a whole line and takes nothing any more, so that a run that ends because the disk is full can still be summed up.
///
/// Every member but the destructor throws OutputError (one line: file and reason) where the file cannot be written.
class LineFile {
public:
    /// reserve() gives room for one line of so many characters.
    static constexpr std::size_t line_chars_max = 1024;

    /// Creates or empties the file at `path`; `header`, if any, is its first line.
    explicit LineFile(std::string path, std::string_view header = {});
    /// Goes on with the file at `path` after its first `size` bytes; what follows them is cut off. Throws OutputError
    /// where it has fewer.
    LineFile(std::string path, std::int64_t size);
    /// Writes what is buffered; errors are lost, so call close().
    ~LineFile();
    LineFile(const LineFile&) = delete;
    LineFile& operator=(const LineFile&) = delete;

    /// Room for one line; the caller writes there and passes the end, behind the newline, to commit().
    char* reserve() {
        if (capacity - used_ < line_chars_max) flush();
        return buffer_.get() + used_;
    }
    void commit(const char* end) { used_ = static_cast<std::size_t>(end - buffer_.get()); }
    /// A line of any length, without its newline.
    void append(std::string_view line);
    void flush();
    /// Bytes so far, buffered ones included.
    std::int64_t size() const { return written_ + static_cast<std::int64_t>(used_); }
    const std::string& path() const { return path_; }
    /// Flushes and closes; the second call does nothing.
    void close();
    /// Closes without what is buffered, and takes nothing any more.
    void abandon();

private:
    static constexpr std::size_t capacity = 64 * 1024;

    void write_whole(std::string_view text);
    [[noreturn]] void cut_and_fail(std::string_view text, int error);

    std::string path_;
    int descriptor_ = -1;
    std::size_t used_ = 0;
    std::int64_t written_ = 0;
    std::unique_ptr<char[]> buffer_;
};

/// Room on the disk that is kept for the last words of a run: a file of 64 KiB, which the first of these makes, where
/// the disk has so much, and the second removes.
void hold_room(const std::string& path);
void release_room(const std::string& path);
/// Writes the text into that room, which nobody else can take meanwhile, and gives it the name `path`. Throws
/// OutputError.
void write_in_room(const std::string& room, const std::string& path, std::string_view text);

/// Creates the directory and its parents. Throws OutputError.
void make_directory(const std::string& path);

/// Writes all of `text`, whatever interrupts. Returns zero, or the error number.
int write_all(int descriptor, std::string_view text);

/// Writes the file under another name and renames it: whoever looks sees nothing, the old text or the whole new one.
/// Throws OutputError.
void write_file_by_rename(const std::string& path, std::string_view text);

}  // namespace rubato::trace
