// rubato calibrate: from measurements, whoever made them, to a profile.
#include "cli/calibrate/measure.hpp"
#include "cli/calibrate/of_run.hpp"
#include "cli/calibrate/of_tables.hpp"
#include "cli/calibrate/rank_session.hpp"
#include "cli/calibrate/stopwatch.hpp"
#include "cli/calibrate/use_profile.hpp"
#include "cli/commands.hpp"
#include "cli/error.hpp"
#include "cli/estimate.hpp"
#include "cli/exit_status.hpp"
#include "cli/layers.hpp"
#include "cli/load.hpp"
#include "cli/log.hpp"
#include "cli/oddities.hpp"
#include "cli/signals.hpp"
#include "cli/sweep/ranks.hpp"
#include "learn/task.hpp"
#include "trace/line_file.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

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

/// What a mean is about that is longer than most times, as on a host where threads take turns on the cores.
std::string tail_text(const Profile& profile, const ComputeTimes& times) {
    const auto above = std::upper_bound(times.quantiles.begin(), times.quantiles.end(), times.mean);
    const auto place = static_cast<std::size_t>(above - times.quantiles.begin());
    if (place == 0 || place == times.quantiles.size() || profile.levels[place] <= 0.9) return "";
    return fmt::format("; the mean is that of a few long ones: under {:.2g} % take longer than it",
                       100 * (1 - profile.levels[place - 1]));
}

std::string spread_text(const Profile& profile, const ComputeTimes& times) {
    if (times.quantiles.empty()) return "too few for a distribution";
    const auto at = [&](double level) {
        std::size_t i = 0;
        while (i + 1 < profile.levels.size() && profile.levels[i] < level) ++i;
        return seconds_text(times.quantiles[i]);
    };
    return fmt::format("10 to 90 %: {} to {}, longest {}", at(0.1), at(0.9), at(1)) + tail_text(profile, times);
}

void print_compute(const Profile& profile) {
    for (const auto& [name, device] : profile.compute) {
        std::string label = "compute";
        for (const auto& [batch, times] : device.batches) {
            row(label, fmt::format("{}, batch size {}: {} ({} gradients; {})", name, batch, seconds_text(times.mean),
                                   times.n, spread_text(profile, times)));
            label.clear();
        }
        if (device.dispatch_s > 0)
            row("", fmt::format("{}, beside the computation: {} a gradient", name, seconds_text(device.dispatch_s)));
        std::string sharing;
        for (const auto& [workers, factor] : device.host_sharing)
            sharing += fmt::format("{}{} with {}", sharing.empty() ? "" : ", ", fmt::format("{:.4g}", factor), workers);
        if (!sharing.empty()) row("", name + ", factor by workers on a host: " + sharing);
    }
    if (profile.common)
        row("", fmt::format("slow moments of a host: {:.2g} of the variance of its workers' times, for {}",
                            profile.common->share, seconds_text(profile.common->time_s)));
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

void check_options(const CalibrateOptions& options) {
    constexpr double least = 0.1, most = 86400;
    if (!(options.seconds >= least && options.seconds <= most))  // NaN is neither
        throw InputError(fmt::format("calibrate: --seconds {}: expected a number of seconds from {} to {}",
                                     options.seconds, least, most));
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

/// A line on a terminal that says what is being measured.
class ProgressLine {
public:
    explicit ProgressLine(bool quiet) : visible_(!quiet && isatty(STDERR_FILENO) != 0) {}
    ~ProgressLine() {
        if (visible_) std::fputs("\r\x1b[K", stderr);
    }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(const std::string& text) const {
        if (!visible_) return;
        std::fputs(
            ("\r\x1b[Kmeasuring " + text + ", " + seconds_text(std::floor(seconds_since(begin_))) + " so far").c_str(),
            stderr);
        std::fflush(stderr);
    }

private:
    bool visible_;
    Clock::time_point begin_ = Clock::now();
};

Loaded load_to_measure(const CalibrateOptions& options) {
    std::vector<std::string> notes;
    Node tree = read_layers(options.scenario, options.sets, notes);
    drop_profiles(tree);
    Loaded loaded = resolve_layers(std::move(tree), fs::path(options.scenario).stem().string());
    complete_sizes(loaded);
    notes.insert(notes.end(), loaded.notes.begin(), loaded.notes.end());
    for (const auto& text : notes) note(text);
    if (!loaded.scenario.model.gradients)
        throw InputError(loaded.tree.where, "model",
                         "the scenario is timing only and has no gradients to measure: name a model with "
                         "\"gradients\": \"real\"");
    require_files(loaded);
    return loaded;
}

/// fabric: of the ranks that measure together; null: this process alone.
Profile measured_here(const CalibrateOptions& options, exec::Fabric* fabric) {
    const Loaded loaded = load_to_measure(options);
    const auto task = learn::make_task(loaded.scenario);
    const ProgressLine line(options.quiet);
    MeasureOptions measurement;
    measurement.seconds = options.seconds;
    measurement.interrupted = &watch_signals();
    measurement.progress = [&line](const std::string& text) { line.show(text); };
    std::optional<RankSession> session;
    if (fabric != nullptr) {
        session.emplace(*fabric, *task, measurement.interrupted);
        measurement.ranks = fabric->size() - 1;
        measurement.rank_gradients = [&](int batch, int workers, double limit_s) {
            return session->gradients(batch, workers, limit_s);
        };
        measurement.rank_messages = [&](const std::vector<double>& bytes) {
            return std::optional(session->messages(bytes, 0.1 * options.seconds));
        };
    }
    return measure(loaded.scenario, *task, measurement);
}

/// A rank but the first: it reads the same scenario and does as it is asked.
int serve(const CalibrateOptions& options, exec::Fabric& fabric) {
    const Loaded loaded = load_to_measure(options);
    serve_calibration(fabric, *learn::make_task(loaded.scenario));
    return exit_finished;
}

/// The ranks of mpirun, where there are several; null otherwise. All that may be wrong with the input is found out by
/// each of them before.
std::unique_ptr<exec::Fabric> ranks_of(const CalibrateOptions& options) {
    const Rank rank = find_rank();
    if (rank.count < 2) return nullptr;
    if (rank.number > 0) be_quiet();
    if (options.scenario.empty())
        throw InputError("calibrate: a launcher has started " + std::to_string(rank.count) +
                         " copies, and only the measurement of a scenario is a matter for several");
    learn::make_task(load_to_measure(options).scenario);
    return exec::open_mpi();
}

}  // namespace

int calibrate_command(const CalibrateOptions& options) try {
    if (options.quiet) be_quiet();
    check_options(options);
    const std::string path = output_path(options);
    if (find_rank().number == 0) check_output(path, options.force);
    const auto fabric = ranks_of(options);
    if (fabric && fabric->rank() > 0) return serve(options, *fabric);
    Profile profile;
    if (!options.scenario.empty()) profile = measured_here(options, fabric.get());
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
} catch (const Interruption&) {
    error("the measurement was interrupted; no profile is written");
    return exit_ended_otherwise;
}

}  // namespace rubato::cli
