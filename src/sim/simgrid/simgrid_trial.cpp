#include "sim/simgrid/simgrid_trial.hpp"

#include "sim/network.hpp"
#include "sim/simgrid/simgrid_kernel.hpp"
#include "sim/simgrid/simgrid_messages.hpp"
#include "sim/simgrid/simgrid_platform.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xbt/log.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace rubato::sim {

namespace {

namespace s4u = simgrid::s4u;

constexpr int loaded = 0;   ///< exit status: the log holds warnings
constexpr int refused = 3;  ///< exit status: after the mark comes our own message
constexpr int thrown = 4;   ///< exit status: after the mark comes SimGrid's exception
constexpr char mark = '\x1e';

/// Ends the child with a message for the parent, without the destructors of the parent's objects.
[[noreturn]] void end_child(const std::string& message, int status) {
    const std::string text = mark + message;
    const auto written = write(STDERR_FILENO, text.data(), text.size());
    _exit(written < 0 ? 1 : status);
}

std::string number(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
}

/// SimGrid takes negative speeds in silence and aborts in mid-run where a link has no bandwidth.
void check_figures(const PlatformText& file, const std::vector<s4u::Host*>& hosts, const s4u::Engine& engine) {
    const auto positive = [](double value) { return value > 0 && std::isfinite(value); };
    for (const s4u::Host* host : hosts) {
        if (positive(host->get_speed())) continue;
        end_child(file.at(file.line_of(host->get_name())) + "speed of host \"" + host->get_name() + "\" is " +
                      number(host->get_speed()) + " flop/s; expected above zero",
                  refused);
    }
    for (const s4u::Link* link : engine.get_all_links()) {
        std::string name = link->get_name();
        if (name == "__loopback__") continue;
        for (const char* direction : {"_UP", "_DOWN"})
            if (name.ends_with(direction) && file.line_of(name) == 0) name.resize(name.size() - std::strlen(direction));
        const std::string place = file.at(file.line_of(name));
        if (!(link->get_bandwidth() > 0))
            end_child(place + "bandwidth of link \"" + name + "\" is " + number(link->get_bandwidth()) +
                          " bytes/s; expected above zero",
                      refused);
        if (!(link->get_latency() >= 0) || !std::isfinite(link->get_latency()))
            end_child(place + "latency of link \"" + name + "\" is " + number(link->get_latency()) +
                          " s; expected at least zero",
                      refused);
    }
}

/// Hosts whose route is being looked for, for the case that SimGrid aborts.
const s4u::Host* route_from = nullptr;
const s4u::Host* route_to = nullptr;

void check_routes(const ClusterSpec& cluster, const std::vector<s4u::Host*>& hosts, const s4u::Engine& engine) {
    const s4u::Host* server =
        cluster.server_host.empty() ? hosts.front() : engine.host_by_name_or_null(cluster.server_host);
    if (server == nullptr) return;
    std::signal(SIGABRT, [](int) {
        end_child(
            "no usable route between hosts \"" + route_from->get_name() + "\" and \"" + route_to->get_name() + "\"",
            thrown);
    });
    for (const s4u::Host* host : hosts) {
        if (host == server) continue;
        for (const auto& [from, to] : {std::pair{server, host}, std::pair{host, server}}) {
            route_from = from;
            route_to = to;
            try {
                static_cast<void>(find_route(*from, *to));
            } catch (const PlatformError&) {
                // A host that the run does not use may be out of reach; the run itself says so where it is used.
            }
        }
    }
}

[[noreturn]] void child(const PlatformText& file, const ClusterSpec& cluster, int output) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    const struct rlimit no_core { 0, 0 };
    setrlimit(RLIMIT_CORE, &no_core);
    try {
        s4u::Engine& engine = fresh_engine();
        xbt_log_control_set("root.fmt:%m%n");
        xbt_log_control_set("root.thresh:warning");
        configure(cluster.network);
        const auto hosts = load_xml(engine, file.path);
        if (hosts.empty()) end_child(file.at(0) + "the platform has no host", refused);
        check_figures(file, hosts, engine);
        check_routes(cluster, hosts, engine);
    } catch (const std::exception& error) {
        end_child(error.what(), thrown);
    }
    _exit(loaded);
}

std::string read_all(int descriptor) {
    std::string text;
    char part[4096];
    for (;;) {
        const auto size = read(descriptor, part, sizeof part);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) return text;
        text.append(part, static_cast<std::size_t>(size));
    }
}

bool has_profiles(const std::string& text) {
    return text.find("_file") != std::string::npos || text.find("<trace") != std::string::npos;
}

PlatformText read_platform(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw PlatformError(path + ": cannot open the platform file: " + std::strerror(errno));
    std::ostringstream text;
    text << in.rdbuf();
    return {path, text.str()};
}

}  // namespace

Trial try_platform(const ClusterSpec& cluster) {
    const PlatformText file = read_platform(cluster.platform);
    int ends[2];
    if (pipe(ends) != 0) throw PlatformError(file.at(0) + "cannot try the platform: " + std::strerror(errno));
    std::fflush(nullptr);  // or the child would write the buffered output again
    const pid_t pid = fork();
    if (pid < 0) throw PlatformError(file.at(0) + "cannot try the platform: " + std::strerror(errno));
    if (pid == 0) child(file, cluster, ends[1]);
    close(ends[1]);
    const std::string log = read_all(ends[0]);
    close(ends[0]);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    const int outcome = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (outcome == loaded) {
        return {explain_warnings(file, log), has_profiles(file.text)};
    }
    const std::string message = log.substr(log.rfind(mark) + 1);
    if (outcome == refused) throw PlatformError(message);
    throw PlatformError(explain_failure(file, outcome == thrown ? message : log));
}

}  // namespace rubato::sim
