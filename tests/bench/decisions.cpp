// Cost of a decision of bounded-staleness policies: seconds a push of on_arrival and on_applied, with 100 and with
// 10,000 workers, and their ratio. Workers push in random order; those that are held back push no more until they are
// let go. What the loop around the policy costs is measured with asp, which decides nothing, and taken off.
// bench_decisions LAMBDA POLICY runs one loop alone, for callgrind.
#include "core/policy.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace rubato;

namespace {

constexpr std::int64_t pushes = 4'000'000;

ProtocolSpec spec_of(const std::string& name) {
    ProtocolSpec spec;
    spec.name = name;
    spec.bound = 3;
    return spec;
}

/// Nanoseconds a push.
double loop_ns(const ProtocolSpec& spec, int lambda) {
    Policy policy = make_policy(spec, lambda);
    Orders orders;
    std::vector<WorkerId> ready;
    for (WorkerId worker = 0; worker < lambda; ++worker) ready.push_back(worker);
    std::uint64_t random = 88172645463325252u;
    std::int64_t held = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t push = 0; push < pushes; ++push) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        std::swap(ready[(random >> 32) % ready.size()], ready.back());
        const WorkerId worker = ready.back();
        ready.pop_back();
        const Time now = push * 1000;
        on_arrival(policy, {worker, push, push, 32, now}, orders);
        on_applied(policy, now, orders);
        held += orders.release.empty();
        ready.insert(ready.end(), orders.release.begin(), orders.release.end());
        orders.clear();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (spec.name != "asp" && held == 0) std::abort();  // nobody ever waited
    return seconds / pushes * 1e9;
}

/// The least of several, so that what else the machine does counts little. With the loop around it.
double least_ns(const std::string& name, int lambda) {
    double least = 1e9;
    for (int i = 0; i < 5; ++i) least = std::min(least, loop_ns(spec_of(name), lambda));
    return least;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3) return std::printf("%.1f\n", loop_ns(spec_of(argv[2]), std::atoi(argv[1]))), 0;
    const double bare_100 = least_ns("asp", 100), bare_10000 = least_ns("asp", 10'000);
    for (const char* name : {"ssp", "dssp"}) {
        const double few = least_ns(name, 100) - bare_100, many = least_ns(name, 10'000) - bare_10000;
        std::printf(
            "{\"name\": \"%s: time of a decision, 10,000 over 100 workers\", \"value\": %.3f, \"target\": \"<= 2\", "
            "\"detail\": \"%.0f and %.0f ns a push\"}\n",
            name, many / few, many, few);
    }
    return 0;
}
