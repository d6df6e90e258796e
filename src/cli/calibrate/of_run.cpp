#include "cli/calibrate/of_run.hpp"

#include "cli/calibrate/common_noise.hpp"
#include "cli/calibrate/run_network.hpp"
#include "cli/calibrate/run_tables.hpp"
#include "cli/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace rubato::cli {
namespace {

/// Fewer gradients of a batch size say little beside those of another: mostly the last, cut slice of each epoch.
constexpr std::size_t rare = 20;

/// Index of a gradient's class, and what the class is called.
struct Classes {
    std::vector<std::string> names;
    std::vector<std::size_t> of_worker;
};

Classes classes_of(const Scenario& scenario, bool by_worker) {
    Classes classes;
    for (const auto& group : scenario.workers.groups) {
        for (int i = 0; i < group.count; ++i) {
            const std::string name =
                by_worker ? worker_class(static_cast<int>(classes.of_worker.size())) : group.device;
            const auto found = std::find(classes.names.begin(), classes.names.end(), name);
            classes.of_worker.push_back(static_cast<std::size_t>(found - classes.names.begin()));
            if (found == classes.names.end()) classes.names.push_back(name);
        }
    }
    return classes;
}

/// Workers on the host of each; empty where the run does not tell.
std::vector<int> workers_a_host(const RunTables& run) {
    std::map<std::string, int> on_host;
    for (const auto& worker : run.workers) ++on_host[worker.host];
    std::vector<int> counts;
    for (const auto& worker : run.workers) counts.push_back(on_host[worker.host]);
    return counts;
}

/// One time of a class.
struct Timed {
    int batch = 0;
    int worker = 0;
    int neighbours = 0;  ///< workers on the host, 0: not known
    double seconds = 0;
};

/// Without each worker's first tenth: caches and clocks warm up, and all workers start at once.
std::vector<std::vector<Timed>> times_by_class(const RunTables& run, const Classes& classes) {
    const auto hosts = workers_a_host(run);
    std::vector<std::vector<Timed>> result(classes.names.size());
    const auto& rows = run.gradients;
    for (std::size_t begin = 0; begin < rows.size();) {
        std::size_t end = begin;
        while (end < rows.size() && rows[end].worker == rows[begin].worker) ++end;
        const std::size_t count = end - begin;
        const std::size_t warm_up = count < 2 ? 0 : std::max<std::size_t>(1, count / 10);
        const auto worker = static_cast<std::size_t>(rows[begin].worker);
        for (std::size_t i = begin + warm_up; i < end; ++i) {
            const double seconds = rows[i].end_s - rows[i].begin_s;
            result[classes.of_worker[worker]].push_back(
                {rows[i].samples, rows[i].worker, hosts.empty() ? 0 : hosts[worker], seconds});
        }
        begin = end;
    }
    return result;
}

struct Mean {
    double sum = 0, squares = 0, n = 0;
    void add(double value) {
        sum += value;
        squares += value * value;
        ++n;
    }
    double value() const { return sum / n; }
    double error() const { return std::sqrt(std::max(0.0, squares / n - value() * value()) / n); }
};

/// What a gradient took beside its computation, by class: nothing in simulation; in real runs threads wake each other.
/// The last stretch of a worker may be of a gradient that never ended, so that few gradients tell nothing.
std::vector<double> dispatch_by_class(const RunTables& run, const Classes& classes) {
    std::vector<double> result(classes.names.size());
    if (run.workers.empty() || run.backend == "sim" || run.scenario.trace.every > 1) return result;
    std::vector<double> seen(result.size()), computed(result.size()), gradients(result.size());
    for (std::size_t w = 0; w < run.workers.size(); ++w) {
        seen[classes.of_worker[w]] += run.workers[w].compute_s;
        gradients[classes.of_worker[w]] += static_cast<double>(run.workers[w].gradients);
    }
    for (const auto& gradient : run.gradients)
        computed[classes.of_worker[static_cast<std::size_t>(gradient.worker)]] += gradient.end_s - gradient.begin_s;
    constexpr double few = 50;
    for (std::size_t c = 0; c < result.size(); ++c) {
        if (gradients[c] >= few) result[c] = std::max(0.0, (seen[c] - computed[c]) / gradients[c]);
    }
    return result;
}

int most_frequent_batch(const std::vector<Timed>& times) {
    std::map<int, std::int64_t> counts;
    for (const auto& time : times) ++counts[time.batch];
    return std::max_element(counts.begin(), counts.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
}

/// Factors by workers on the host, where hosts of the class differ; times are brought to the most frequent number.
void divide_sharing(std::vector<Timed>& times, DeviceProfile& device) {
    if (times.front().neighbours == 0) return;
    const int batch = most_frequent_batch(times);
    std::map<int, Mean> means;
    for (const auto& time : times) {
        if (time.batch == batch) means[time.neighbours].add(time.seconds);
    }
    const auto reference = std::max_element(means.begin(), means.end(),
                                            [](const auto& a, const auto& b) { return a.second.n < b.second.n; });
    for (const auto& [workers, mean] : means)
        device.host_sharing[workers] =
            mean.value() > 0 && reference->second.value() > 0 ? mean.value() / reference->second.value() : 1;
    for (auto& time : times) {
        const auto factor = device.host_sharing.find(time.neighbours);
        if (factor != device.host_sharing.end()) time.seconds /= factor->second;
    }
}

/// A class in which one worker is not like the others predicts waits at barriers badly.
void note_unlike_workers(const std::string& name, const std::vector<Timed>& times, std::vector<std::string>& notes) {
    const int batch = most_frequent_batch(times);
    std::map<int, Mean> by_worker;
    Mean all;
    for (const auto& time : times) {
        if (time.batch != batch) continue;
        by_worker[time.worker].add(time.seconds);
        all.add(time.seconds);
    }
    if (!(all.value() > 0)) return;
    int worst = -1;
    double largest = 0.05;
    for (const auto& [worker, mean] : by_worker) {
        const double off = std::abs(mean.value() / all.value() - 1);
        if (off <= largest || std::abs(mean.value() - all.value()) < 4 * mean.error()) continue;
        largest = off;
        worst = worker;
    }
    if (worst < 0) return;
    notes.push_back(
        fmt::format("compute: worker {} takes {:+.1f} % of the mean of class \"{}\"; a class of its own in "
                    "workers.groups would keep such workers apart",
                    worst, 100 * (by_worker[worst].value() / all.value() - 1), name));
}

void add_class(const std::string& name, std::vector<Timed> times, double dispatch_s, Profile& profile) {
    if (times.empty()) {
        profile.notes.push_back("compute: no worker of class \"" + name + "\" has computed a gradient");
        return;
    }
    DeviceProfile device;
    device.source = "run";
    device.dispatch_s = dispatch_s;
    divide_sharing(times, device);
    note_unlike_workers(name, times, profile.notes);
    const int main_batch = most_frequent_batch(times);
    std::map<int, std::vector<double>> by_batch;
    for (const auto& time : times) by_batch[time.batch].push_back(time.seconds);
    std::size_t left_out = 0;
    for (auto& [batch, seconds] : by_batch) {
        if (batch != main_batch && seconds.size() < rare) {
            left_out += seconds.size();
            continue;
        }
        ComputeTimes result = compute_times(seconds);
        if (result.mean > 0) device.batches[batch] = std::move(result);
    }
    if (device.batches.empty()) {
        profile.notes.push_back("compute: gradients of class \"" + name + "\" took no time");
        return;
    }
    if (left_out > 0)
        profile.notes.push_back(
            fmt::format("compute: {} gradients of class \"{}\" of rare batch sizes are left out", left_out, name));
    if (device.batches.size() == 1)
        profile.notes.push_back(
            fmt::format("compute: class \"{}\" was timed with batch size {} alone; others are "
                        "taken as proportional",
                        name, main_batch));
    profile.compute[name] = std::move(device);
}

/// handover_s: of an update to the thread that computes it and back, which the lane that servers.csv tells of leaves
/// out.
void add_server(const RunTables& run, double handover_s, Profile& profile) {
    if (run.servers.empty()) return;
    const ServerTotals& totals = run.servers.front();
    ServerProfile server;
    server.source = "run";
    const auto mean = [](double seconds, std::int64_t n) -> std::optional<OperationCost> {
        if (n == 0) return std::nullopt;
        return OperationCost{n, seconds / static_cast<double>(n), 0};
    };
    server.push = mean(totals.push_s, totals.pushes);
    server.pull = mean(totals.pull_s, totals.replies);
    server.update = mean(totals.update_s, totals.updates);
    if (!server.push && !server.pull && !server.update) return;
    if (server.update) server.update->fixed_s += handover_s;
    const MessageSizes sizes = message_sizes(run);
    server.bytes = {sizes.push > 0 && sizes.pull > 0 ? std::min(sizes.push, sizes.pull) : sizes.push + sizes.pull,
                    std::max(sizes.push, sizes.pull)};
    profile.server = server;
    if (handover_s > 0)
        profile.notes.push_back(
            fmt::format("server: an update is taken to be handed to a thread and back in the {:.3g} us that a gradient "
                        "is",
                        1e6 * handover_s));
    profile.notes.emplace_back(
        "server: one size of messages and weights does not tell what each byte costs; all of the seconds count as "
        "fixed");
}

std::string host_of(const RunTables& run) {
    if (run.backend == "sim") return "a simulated cluster";
    std::set<std::string> hosts;
    for (const auto& worker : run.workers) hosts.insert(worker.host);
    if (hosts.empty()) return "";
    return hosts.size() == 1 ? *hosts.begin() : fmt::format("{} and {} more", *hosts.begin(), hosts.size() - 1);
}

}  // namespace

std::string worker_class(int worker) {
    return "worker-" + std::to_string(worker);
}

Profile profile_of_run(const std::string& directory, const RunProfileOptions& options) {
    const RunTables run = read_run(directory);
    if (run.gradients.empty())
        throw InputError(directory +
                         ": no gradient was computed to its end, so that there is nothing to calibrate from");
    Profile profile;
    profile.host = host_of(run);
    if (run.workers.empty())
        profile.notes.emplace_back(
            "the run did not come to its end: what its server and network took, and how workers shared hosts, is not "
            "known");
    if (run.oversubscribed)
        profile.notes.emplace_back(
            "the run had more processes on a host than cores: its times are those of processes that took turns");
    const Classes classes = classes_of(run.scenario, options.by_worker);
    auto times = times_by_class(run, classes);
    const auto dispatch = dispatch_by_class(run, classes);
    for (std::size_t c = 0; c < classes.names.size(); ++c)
        add_class(classes.names[c], std::move(times[c]), dispatch[c], profile);
    profile.common = common_noise(run);
    add_server(run, dispatch.empty() ? 0 : *std::min_element(dispatch.begin(), dispatch.end()), profile);
    profile.network = network_of_run(run, profile.notes);
    return profile;
}

}  // namespace rubato::cli
