#include "trace/line_file.hpp"

#include "trace/number_text.hpp"
#include "trace/recorder.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace rubato::trace {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
    const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    throw OutputError("cannot write " + path + ": " + std::strerror(error), full);
}

int open_or_throw(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) fail(path, errno);
    return descriptor;
}

}  // namespace

int write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written < 0 && errno != EINTR) return errno;
        if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

LineFile::LineFile(std::string path, std::string_view header)
    : path_(std::move(path)), descriptor_(open_or_throw(path_)), buffer_(new char[capacity]) {
    if (header.empty()) return;
    append(header);
    try {
        flush();  // an output that cannot be written is better known before the run than after it
    } catch (...) {
        ::close(std::exchange(descriptor_, -1));
        throw;
    }
}

LineFile::LineFile(std::string path, std::int64_t size) : path_(std::move(path)), buffer_(new char[capacity]) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(path_, errno);
    const auto there = ::lseek(descriptor_, 0, SEEK_END);
    int error = there < 0 ? errno : 0;
    if (error == 0 && there >= size && ::ftruncate(descriptor_, size) != 0) error = errno;
    if (error == 0 && ::lseek(descriptor_, size, SEEK_SET) < 0) error = errno;
    written_ = size;
    if (error == 0 && there >= size) return;
    ::close(std::exchange(descriptor_, -1));
    if (error != 0) fail(path_, error);
    throw OutputError(path_ + ": has " + std::to_string(there) + " bytes, but the checkpoint was made when it had " +
                      std::to_string(size) + ": the file was altered since");
}

LineFile::~LineFile() {
    try {
        close();
    } catch (const std::exception&) {
    }
}

void LineFile::append(std::string_view line) {
    if (line.size() + 1 > capacity) {
        flush();
        write_whole(std::string(line) + "\n");
        return;
    }
    if (capacity - used_ < line.size() + 1) flush();
    char* end = put(buffer_.get() + used_, line);
    *end++ = '\n';
    commit(end);
}

void LineFile::flush() {
    write_whole({buffer_.get(), std::exchange(used_, 0)});
}

void LineFile::write_whole(std::string_view text) {
    if (descriptor_ < 0 || text.empty()) return;
    const int error = write_all(descriptor_, text);
    if (error != 0) cut_and_fail(text, error);
    written_ += static_cast<std::int64_t>(text.size());
}

// What fitted of the text may end in the middle of a line.
void LineFile::cut_and_fail(std::string_view text, int error) {
    const auto end = ::lseek(descriptor_, 0, SEEK_CUR);
    if (end > written_) {
        const auto line = text.substr(0, static_cast<std::size_t>(end - written_)).rfind('\n');
        written_ += line == std::string_view::npos ? 0 : static_cast<std::int64_t>(line) + 1;
        if (::ftruncate(descriptor_, written_) != 0) error = errno;
    }
    abandon();
    fail(path_, error);
}

void LineFile::abandon() {
    used_ = 0;
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void LineFile::close() {
    flush();
    if (descriptor_ < 0) return;
    // Network file systems report a full disk here.
    if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail(path_, errno);
}

void hold_room(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) return;  // whoever writes next finds out
    const bool held = ::posix_fallocate(descriptor, 0, 64 * 1024) == 0;
    ::close(descriptor);
    if (!held) ::unlink(path.c_str());
}

void release_room(const std::string& path) {
    ::unlink(path.c_str());
}

void write_in_room(const std::string& room, const std::string& path, std::string_view text) {
    const int descriptor = ::open(room.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) fail(path, errno);
    int error = write_all(descriptor, text);
    if (error == 0 && ::ftruncate(descriptor, static_cast<off_t>(text.size())) != 0) error = errno;
    if (::close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
    if (error == 0 && ::rename(room.c_str(), path.c_str()) != 0) error = errno;
    if (error != 0) fail(path, error);
}

void make_directory(const std::string& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) fail(path, error.value());
    if (!std::filesystem::is_directory(path, error)) fail(path, ENOTDIR);
}

void write_file_by_rename(const std::string& path, std::string_view text) {
    const std::string other = path + ".part";
    const int descriptor = open_or_throw(other);
    int error = write_all(descriptor, text);
    if (::close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
    if (error == 0 && ::rename(other.c_str(), path.c_str()) != 0) error = errno;
    if (error == 0) return;
    ::unlink(other.c_str());
    fail(path, error);
}

}  // namespace rubato::trace
