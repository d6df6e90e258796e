#include "learn/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

namespace rubato::learn {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();

/// Version 2: "200000 100000", microseconds in each period, or "max 100000".
double cores_of_cpu_max(const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    double quota = 0, period = 0;
    return file >> quota >> period && quota > 0 && period > 0 ? quota / period : no_limit;
}

/// Version 1: a file each; a quota of -1 is none.
double cores_of_cfs_quota(const std::string& folder) {
    std::ifstream quota_file(folder + "/cpu.cfs_quota_us"), period_file(folder + "/cpu.cfs_period_us");
    double quota = 0, period = 0;
    return quota_file >> quota && period_file >> period && quota > 0 && period > 0 ? quota / period : no_limit;
}

/// Of a group and those above it, up to the mount. What a container does not see of its host's tree is not there.
double least(const std::string& mount, std::string group, double (*limit_of)(const std::string& folder)) {
    double limit = no_limit;
    for (; group.starts_with('/'); group.resize(group.rfind('/'))) limit = std::min(limit, limit_of(mount + group));
    return std::min(limit, limit_of(mount));
}

}  // namespace

int bound_cores() {
    cpu_set_t set;
    // Fails where the machine has more cores than the set has room for.
    const bool known = ::sched_getaffinity(0, sizeof set, &set) == 0;
    return std::max(1, known ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency()));
}

int granted_cores(const std::string& root) {
    double limit = no_limit;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {  // NUMBER:CONTROLLERS:GROUP
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
        const std::string mount = root + "/sys/fs/cgroup";
        std::istringstream names(controllers);
        bool cpu = false;
        for (std::string name; std::getline(names, name, ',');) cpu = cpu || name == "cpu";
        // Where both versions are mounted, the second one has a folder of its own.
        const auto look = [&](const std::string& where, auto limit_of) {
            limit = std::min(limit, least(mount + where, group, limit_of));
        };
        if (controllers.empty()) {
            look("", cores_of_cpu_max);
            look("/unified", cores_of_cpu_max);
        }
        if (cpu) {
            look("/" + controllers, cores_of_cfs_quota);
            look("/cpu", cores_of_cfs_quota);
        }
    }
    return limit < 1e6 ? std::max(1, static_cast<int>(std::ceil(limit))) : 0;
}

int usable_cores() {
    const int granted = granted_cores();
    return granted > 0 ? std::min(granted, bound_cores()) : bound_cores();
}

}  // namespace rubato::learn
