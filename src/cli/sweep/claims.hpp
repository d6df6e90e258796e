// Who runs which point, where several processes work on one sweep: locks on bytes of a file, which the system lets go
// with the process that holds them, however it ends.
#pragma once

#include <cstdint>
#include <string>

namespace rubato::cli {

/// POSIX record locks on DIRECTORY/.claims, far behind the end of the empty file: a byte a point, and byte 0 for
/// whoever writes. They hold between processes, and over NFS; a fork does not inherit them. One value a process.
class Claims {
public:
    /// Throws trace::OutputError where the file cannot be made or the file system knows no locks.
    explicit Claims(const std::string& directory);
    ~Claims();
    Claims(const Claims&) = delete;
    Claims& operator=(const Claims&) = delete;

    /// False where another process has the point.
    bool take(std::uint64_t identity) { return lock(offset(identity), false); }
    void release(std::uint64_t identity) { unlock(offset(identity)); }

    /// Only its holder writes into the directory's tables. Waits.
    class Writing {
    public:
        explicit Writing(Claims& claims) : claims_(claims) { claims_.lock(0, true); }
        ~Writing() { claims_.unlock(0); }
        Writing(const Writing&) = delete;
        Writing& operator=(const Writing&) = delete;

    private:
        Claims& claims_;
    };

private:
    static std::int64_t offset(std::uint64_t identity) { return 16 + static_cast<std::int64_t>(identity >> 2); }
    bool lock(std::int64_t at, bool wait);
    void unlock(std::int64_t at);

    std::string path_;
    int descriptor_ = -1;
};

}  // namespace rubato::cli
