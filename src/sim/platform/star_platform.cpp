#include "sim/platform/star_platform.hpp"

#include "sim/network.hpp"

#include <cmath>
#include <cstdio>

namespace rubato::sim {

namespace {

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

void require_positive(double value, const char* key, const char* unit) {
    if (!(value > 0) || !std::isfinite(value))
        throw PlatformError("cluster.network.star." + std::string(key) + " is " + number(value) +
                            "; expected a number above zero, in " + unit);
}

}  // namespace

StarPlatform inline_star(const StarSpec& spec, int hosts, int servers) {
    if (hosts < 1) throw PlatformError("an inline star needs at least one host, got " + std::to_string(hosts));
    const double server_bandwidth = spec.server_bandwidth == 0 ? spec.bandwidth : spec.server_bandwidth;
    require_positive(spec.bandwidth, "bandwidth", "bytes/s");
    require_positive(server_bandwidth, "server_bandwidth", "bytes/s");
    require_positive(spec.host_speed, "host_speed", "flop/s");
    if (!(spec.latency >= 0) || !std::isfinite(spec.latency))
        throw PlatformError("cluster.network.star.latency is " + number(spec.latency) +
                            "; expected seconds, at least zero");
    StarPlatform star;
    star.hosts.reserve(static_cast<std::size_t>(hosts));
    for (int i = 0; i < hosts; ++i)
        star.hosts.push_back({"host-" + std::to_string(i), spec.host_speed, 1,
                              i < servers ? server_bandwidth : spec.bandwidth, spec.latency});
    return star;
}

}  // namespace rubato::sim
