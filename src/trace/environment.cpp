#include "trace/environment.hpp"

#include <fmt/core.h>

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>

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

int usable_cores() {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max(1, CPU_COUNT(&set));
}

}  // namespace rubato::trace
