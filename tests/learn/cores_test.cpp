// Cores that a process may use: those it is bound to, and what its control groups grant.
#include "learn/cores.hpp"

#include "helpers.hpp"

#include <doctest/doctest.h>

#include <sched.h>

#include <fstream>

using namespace rubato::learn;

namespace {

/// A /proc and a /sys as a kernel shows them.
struct System {
    Folder folder;

    void write(const std::string& path, const std::string& text) const {
        const auto file = folder.path / path;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream(file) << text << "\n";
    }
    int granted() const { return granted_cores(folder.path.string()); }
};

/// Back to where it was bound, whatever fails meanwhile.
struct Bound {
    cpu_set_t before;
    Bound() { REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0); }
    ~Bound() { ::sched_setaffinity(0, sizeof before, &before); }
};

}  // namespace

TEST_CASE("cores: those that the thread is bound to") {
    const Bound bound;
    CHECK(bound_cores() == CPU_COUNT(&bound.before));
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
        if (CPU_ISSET(cpu, &bound.before)) CPU_SET(cpu, &one);
    REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(bound_cores() == 1);
    CHECK(usable_cores() == 1);
}

TEST_CASE("cores: no control group, or none with a limit, grants all") {
    const System system;
    CHECK(system.granted() == 0);
    system.write("proc/self/cgroup", "0::/");
    CHECK(system.granted() == 0);
    system.write("sys/fs/cgroup/cpu.max", "max 100000");
    CHECK(system.granted() == 0);
    system.write("sys/fs/cgroup/cpu.max", "nonsense");
    CHECK(system.granted() == 0);
}

TEST_CASE("cores: the least limit of a group and those above it, rounded up") {
    const System system;
    system.write("proc/self/cgroup", "0::/batch.slice/job:7/step");
    system.write("sys/fs/cgroup/batch.slice/job:7/cpu.max", "250000 100000");
    CHECK(system.granted() == 3);
    system.write("sys/fs/cgroup/batch.slice/job:7/step/cpu.max", "max 100000");
    CHECK(system.granted() == 3);
    system.write("sys/fs/cgroup/batch.slice/cpu.max", "200000 100000");
    CHECK(system.granted() == 2);
    system.write("sys/fs/cgroup/batch.slice/job:7/step/cpu.max", "1000 100000");
    CHECK(system.granted() == 1);
}

TEST_CASE("cores: a container that does not see its host's groups has the limit of its mount") {
    const System system;
    system.write("proc/self/cgroup", "0::/../../docker/8f3a");
    system.write("sys/fs/cgroup/cpu.max", "400000 100000");
    CHECK(system.granted() == 4);
}

TEST_CASE("cores: a line without a path, as no system writes it, grants what the mount does") {
    const System system;
    for (const char* line : {"0::foo", "0::foo/bar", ":::", "0::", "::", "0", ""}) {
        system.write("proc/self/cgroup", line);
        CHECK(system.granted() == 0);
    }
    system.write("proc/self/cgroup", "0::foo/bar");
    system.write("sys/fs/cgroup/cpu.max", "300000 100000");
    CHECK(system.granted() == 3);
}

TEST_CASE("cores: version 2 beside version 1 is mounted apart, and version 1 by its controller alone, too") {
    const System system;
    system.write("proc/self/cgroup", "4:cpuacct,cpu:/docker/1\n0::/job");
    system.write("sys/fs/cgroup/unified/job/cpu.max", "300000 100000");
    CHECK(system.granted() == 3);
    system.write("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "150000");
    system.write("sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "100000");
    CHECK(system.granted() == 2);
}

TEST_CASE("cores: version 1 has a quota and a period each in a file") {
    const System system;
    system.write("proc/self/cgroup", "7:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n3:cpuset:/\n0::/");
    system.write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "-1");
    system.write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us", "100000");
    CHECK(system.granted() == 0);
    system.write("sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us", "150000");
    CHECK(system.granted() == 2);
    system.write("sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "100000");
    system.write("sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000");
    CHECK(system.granted() == 2);
}
