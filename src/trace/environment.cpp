#include "trace/environment.hpp"

#include <fmt/core.h>

#include <sys/resource.h>

namespace rubato::trace {

std::string program_version() {
    return RUBATO_VERSION;
}

std::string program_revision() {
    return RUBATO_REVISION;
}

std::string compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

std::map<std::string, std::string> library_versions() {
    return {{"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)}};
}

std::int64_t peak_rss_bytes() {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return std::int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

}  // namespace rubato::trace
