// Platform files in JSON: whatever stands in one, it makes a platform that SimGrid can build, or it is refused in one
// line. The limits are low, so that no input is slow for its sheer size.
#include "fuzz/check.hpp"
#include "sim/network.hpp"
#include "sim/platform/platform_json.hpp"

#include <cmath>
#include <cstdint>
#include <set>

using namespace rubato;

namespace {

void check_link(const sim::LinkFigures& link) {
    fuzz::demand(link.bandwidth > 0 && std::isfinite(link.bandwidth), "bandwidths are above zero and finite");
    fuzz::demand(link.latency >= 0 && std::isfinite(link.latency), "latencies are at least zero and finite");
}

template <class T>
double product(const std::vector<T>& factors) {
    double result = 1;
    for (const T factor : factors) {
        fuzz::demand(factor >= 1, "factors are at least 1");
        result *= static_cast<double>(factor);
    }
    return result;
}

void check(const sim::JsonPlatform& platform) {
    const auto hosts = static_cast<double>(platform.hosts.size());
    fuzz::demand(hosts >= 1 && hosts <= 1000, "a platform has hosts, and not too many");
    std::set<std::string> names;
    for (const auto& host : platform.hosts) {
        fuzz::demand(!host.name.empty() && names.insert(host.name).second, "each host has a name of its own");
        fuzz::demand(host.speed > 0 && std::isfinite(host.speed), "speeds are above zero and finite");
        fuzz::demand(host.cores >= 1, "hosts have cores");
        check_link({host.bandwidth, host.latency});
    }
    if (const auto* full = std::get_if<sim::FullShape>(&platform.shape)) {
        check_link(full->link);
        for (const auto& pair : full->pairs) {
            fuzz::demand(pair.a >= 0 && pair.a < pair.b && pair.b < static_cast<int>(hosts), "pairs are of two hosts");
            check_link(pair.link);
        }
    }
    if (const auto* tree = std::get_if<sim::FatTreeShape>(&platform.shape)) {
        check_link(tree->link);
        fuzz::demand(product(tree->down) == hosts, "the levels of a fat tree make its hosts");
        fuzz::demand(product(tree->up) * product(tree->parallel) >= 1, "switches and links are at least one");
        fuzz::demand(tree->up.size() == tree->down.size(), "lists of levels are equally long");
        fuzz::demand(tree->parallel.size() == tree->down.size(), "lists of levels are equally long");
    }
    if (const auto* torus = std::get_if<sim::TorusShape>(&platform.shape)) {
        check_link(torus->link);
        fuzz::demand(product(torus->dimensions) == hosts, "the dimensions of a torus make its hosts");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        check(sim::parse_platform_json({reinterpret_cast<const char*>(data), size}, "p.json", {1000, 10000}));
    } catch (const sim::PlatformError& error) {
        fuzz::demand_one_line(error.what());
    }
    return 0;
}
