// rubato calibrate: from measurements, whoever made them, to a profile.
#include "cli/calibrate/of_run.hpp"
#include "cli/calibrate/of_tables.hpp"
#include "cli/commands.hpp"
#include "cli/error.hpp"
#include "cli/estimate.hpp"
#include "cli/exit_status.hpp"
#include "cli/log.hpp"
#include "cli/oddities.hpp"
#include "trace/line_file.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>

namespace rubato::cli {
namespace {

namespace fs = std::filesystem;

std::string utc_now() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

void row(const std::string& label, const std::string& text) {
    fmt::print("{:<12}{}\n", label, text);
}

std::string spread_text(const Profile& profile, const ComputeTimes& times) {
    if (times.quantiles.empty()) return "too few for a distribution";
    const auto at = [&](double level) {
        std::size_t i = 0;
        while (i + 1 < profile.levels.size() && profile.levels[i] < level) ++i;
        return seconds_text(times.quantiles[i]);
    };
    return fmt::format("10 to 90 %: {} to {}, longest {}", at(0.1), at(0.9), at(1));
}

void print_compute(const Profile& profile) {
    for (const auto& [name, device] : profile.compute) {
        std::string label = "compute";
        for (const auto& [batch, times] : device.batches) {
            row(label, fmt::format("{}, batch size {}: {} ({} gradients; {})", name, batch, seconds_text(times.mean),
                                   times.n, spread_text(profile, times)));
            label.clear();
        }
        std::string sharing;
        for (const auto& [workers, factor] : device.host_sharing)
            sharing += fmt::format("{}{} with {}", sharing.empty() ? "" : ", ", fmt::format("{:.4g}", factor), workers);
        if (!sharing.empty()) row("", name + ", factor by workers on a host: " + sharing);
    }
}

void print_server(const ServerProfile& server) {
    const auto text = [&](const std::optional<OperationCost>& cost) {
        if (!cost) return std::string("not known");
        const double bytes = server.bytes.largest;
        return seconds_text(cost->fixed_s + cost->per_byte_s * bytes) +
               (cost->per_byte_s > 0 ? " at " + bytes_text(bytes) : "");
    };
    row("server",
        fmt::format("push {}, pull {}, update {}", text(server.push), text(server.pull), text(server.update)));
}

void print_network(const NetworkProfile& network) {
    row("network",
        fmt::format("latency {}, bandwidth {}/s ({}){}; off by at most {:.2g} %", seconds_text(network.latency_s),
                    bytes_text(network.bandwidth), bits_text(network.bandwidth),
                    network.server_bandwidth ? ", of the server " + bytes_text(*network.server_bandwidth) + "/s" : "",
                    100 * network.largest_error));
}

void print_profile(const Profile& profile, const std::string& path) {
    print_compute(profile);
    if (profile.server) print_server(*profile.server);
    if (profile.network) print_network(*profile.network);
    for (const auto& text : profile.notes) note(text);
    row("profile", path);
}

/// The profile's name: --out, or made of what it comes from.
std::string output_path(const CalibrateOptions& options) {
    if (!options.out.empty()) return options.out;
    const std::string& source = !options.run.empty()        ? options.run
                                : !options.scenario.empty() ? options.scenario
                                : !options.timings.empty()  ? options.timings
                                                            : options.network;
    fs::path path = fs::path(source).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    return path.stem().string() + ".profile.json";
}

/// Before anything is measured.
void check_output(const std::string& path, bool force) {
    std::error_code error;
    if (fs::is_directory(path, error)) throw InputError(path + ": is a folder, expected the name of a file");
    if (fs::exists(path, error) && !force)
        throw InputError(path + ": exists already; --force replaces it, --out names another file");
    const fs::path folder = fs::path(path).parent_path();
    if (!folder.empty() && !fs::is_directory(folder, error))
        throw InputError(path + ": there is no folder " + folder.string());
}

void check_sources(const CalibrateOptions& options) {
    if (options.scenario.empty() && options.run.empty() && options.timings.empty() && options.network.empty())
        throw InputError(
            "calibrate: expected something to calibrate from: a scenario to measure here, --run DIR, --timings "
            "FILE.csv "
            "or --network FILE.csv");
    if (!options.scenario.empty() && !options.run.empty())
        throw InputError("calibrate: a scenario to measure and --run exclude each other");
    if (!options.sets.empty() && options.scenario.empty())
        throw InputError("calibrate: --set is about a scenario to measure, and none is given");
}

}  // namespace

int calibrate_command(const CalibrateOptions& options) {
    if (options.quiet) be_quiet();
    check_sources(options);
    const std::string path = output_path(options);
    check_output(path, options.force);
    Profile profile;
    if (!options.run.empty()) profile = profile_of_run(options.run);
    // What was measured by itself says more than what a run shows by the way.
    if (!options.timings.empty()) {
        for (auto& [name, device] : devices_of_timings(options.timings)) profile.compute[name] = std::move(device);
    }
    if (!options.network.empty()) {
        std::erase_if(profile.notes, [](const auto& text) { return text.starts_with("network:"); });
        profile.network = network_of_table(options.network, profile.notes);
    }
    profile.date = utc_now();
    trace::write_file_by_rename(path, to_json(to_node(profile)));
    if (!options.quiet) print_profile(profile, path);
    return exit_finished;
}

}  // namespace rubato::cli
