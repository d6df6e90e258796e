#include "cli/sweep/claims.hpp"

#include "trace/recorder.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace rubato::cli {
namespace {

struct flock byte_at(std::int64_t at, short type) {
    struct flock what {};
    what.l_type = type;
    what.l_whence = SEEK_SET;
    what.l_start = at;
    what.l_len = 1;
    return what;
}

}  // namespace

Claims::Claims(const std::string& directory) : path_(directory + "/.claims") {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
        throw trace::OutputError("cannot write " + path_ + ": " + std::strerror(errno), errno == ENOSPC);
}

Claims::~Claims() {
    ::close(descriptor_);
}

bool Claims::lock(std::int64_t at, bool wait) {
    struct flock what = byte_at(at, F_WRLCK);
    for (;;) {
        if (::fcntl(descriptor_, wait ? F_SETLKW : F_SETLK, &what) == 0) return true;
        if (errno == EINTR) continue;
        if (!wait && (errno == EAGAIN || errno == EACCES)) return false;
        throw trace::OutputError("cannot lock " + path_ + ": " + std::strerror(errno));
    }
}

void Claims::unlock(std::int64_t at) {
    struct flock what = byte_at(at, F_UNLCK);
    static_cast<void>(::fcntl(descriptor_, F_SETLK, &what));
}

}  // namespace rubato::cli
