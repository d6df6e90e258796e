#include "cli/calibrate/measure.hpp"

#include "cli/calibrate/fit.hpp"
#include "cli/calibrate/of_tables.hpp"
#include "cli/calibrate/stopwatch.hpp"
#include "cli/sweep/ranks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

namespace rubato::cli {
namespace {

/// Shares of the time limit.
constexpr double compute_share = 0.55, sharing_share = 0.25, server_share = 0.08, network_share = 0.1;
/// More threads at once say no more about a machine of `cores`.
constexpr int threads_a_core = 4;
/// Of a message without a payload.
constexpr double control_bytes = 64;

double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
}

/// The scenario's batch size, and a quarter, half, twice and four times of it.
std::vector<int> batches_around(int batch, std::int64_t samples) {
    std::set<int> sizes{batch};
    for (const std::int64_t size : {batch / 4L, batch / 2L, 2L * batch, 4L * batch}) {
        if (size >= 1 && size <= samples) sizes.insert(static_cast<int>(size));
    }
    return {sizes.begin(), sizes.end()};
}

/// 1, 2, 4, ... below `workers`.
std::vector<int> fewer_workers(int workers) {
    std::vector<int> counts;
    for (int count = 1; count < workers; count *= 2) counts.push_back(count);
    return counts;
}

std::string class_of(const Scenario& scenario, std::vector<std::string>& notes) {
    std::set<std::string> names;
    for (const auto& group : scenario.workers.groups) names.insert(group.device);
    if (names.size() == 1) return *names.begin();
    notes.emplace_back(
        "compute: the scenario has several classes of devices, and this machine is one; it is called "
        "\"default\"");
    return "default";
}

class Session {
public:
    Session(const Scenario& scenario, const learn::Task& task, const MeasureOptions& options)
        : scenario_(scenario), task_(task), options_(options) {
        workers_ = options.rank_gradients ? std::min(scenario.lambda(), options.ranks)
                                          : std::min(scenario.lambda(), threads_a_core * usable_cores());
    }

    Profile run() {
        char host[256] = "";
        ::gethostname(host, sizeof host - 1);
        profile_.host = host;
        profile_.cores = usable_cores();
        if (workers_ < scenario_.lambda())
            profile_.notes.push_back(
                options_.rank_gradients
                    ? fmt::format("compute: {} ranks at once were measured; the scenario has {} workers", workers_,
                                  scenario_.lambda())
                    : fmt::format(
                          "compute: {} workers at once were measured, {} a core of this machine; the scenario has {}",
                          workers_, threads_a_core, scenario_.lambda()));
        measure_compute();
        tell("updates of the server");
        profile_.server = time_updates(scenario_.optimizer, task_.parameters(), server_share * options_.seconds,
                                       options_.interrupted);
        measure_network();
        add_handovers();
        return std::move(profile_);
    }

private:
    void tell(const std::string& what) const {
        if (options_.progress) options_.progress(what);
    }

    std::vector<double> gradients(int batch, int workers, double limit_s) const {
        tell(fmt::format("gradients of {} samples, {} at once", batch, workers));
        if (options_.rank_gradients) return options_.rank_gradients(batch, workers, limit_s);
        return time_gradients(task_, batch, workers, limit_s, options_.interrupted);
    }

    void measure_compute() {
        const auto batch = static_cast<int>(std::min<std::int64_t>(scenario_.workers.batch_size, task_.samples()));
        const auto batches = batches_around(batch, task_.samples());
        DeviceProfile device;
        device.source = "measured";
        // The scenario's own size counts twice.
        const double part_s = compute_share * options_.seconds / static_cast<double>(batches.size() + 1);
        double reference = 0;
        for (const int size : batches) {
            auto seconds = gradients(size, workers_, size == batch ? 2 * part_s : part_s);
            if (size == batch) reference = mean_of(seconds);
            device.batches[size] = compute_times(seconds);
        }
        device.host_sharing[workers_] = 1;
        const auto fewer = fewer_workers(workers_);
        for (const int workers : fewer) {
            const auto seconds =
                gradients(batch, workers, sharing_share * options_.seconds / static_cast<double>(fewer.size()));
            device.host_sharing[workers] = mean_of(seconds) / reference;
        }
        profile_.compute[class_of(scenario_, profile_.notes)] = std::move(device);
    }

    /// Sizes up to four times the weights, and at least so large that copying shows.
    std::vector<double> message_sizes() const {
        const double weights = 4.0 * static_cast<double>(task_.parameters());
        const double largest = std::clamp(4 * weights, 4e6, 256e6);
        std::set<double> sizes{control_bytes, std::min(weights, largest), largest};
        for (double size = 4096; size < largest; size *= 16) sizes.insert(size);
        return {sizes.begin(), sizes.end()};
    }

    void measure_network() {
        const auto sizes = message_sizes();
        tell("messages");
        const auto wakes =
            medians_by_size(time_handovers({control_bytes}, 0.02 * options_.seconds, options_.interrupted));
        handover_s_ = wakes.front().seconds;
        std::vector<std::pair<double, double>> times;
        if (const auto ranks = options_.rank_messages ? options_.rank_messages(sizes) : std::nullopt) {
            for (const RankTimes& pair : *ranks) times.insert(times.end(), pair.messages.begin(), pair.messages.end());
        }
        if (times.empty()) {
            times = time_handovers(sizes, network_share * options_.seconds, options_.interrupted);
            profile_.notes.emplace_back(
                "network: messages were handed from thread to thread and copied; backend local hands them over without "
                "a copy");
        }
        profile_.network = network_of_times(std::move(times), "measured", "messages", profile_.notes);
    }

    /// Reactors hand gradients and updates to threads and get them back.
    void add_handovers() {
        const double both_ways = 2 * handover_s_;
        for (auto& [name, device] : profile_.compute) device.dispatch_s = both_ways;
        profile_.server->update->fixed_s += both_ways;
    }

    const Scenario& scenario_;
    const learn::Task& task_;
    const MeasureOptions& options_;
    int workers_ = 1;
    double handover_s_ = 0;  ///< from thread to thread
    Profile profile_;
};

}  // namespace

Profile measure(const Scenario& scenario, const learn::Task& task, const MeasureOptions& options) {
    return Session(scenario, task, options).run();
}

}  // namespace rubato::cli
