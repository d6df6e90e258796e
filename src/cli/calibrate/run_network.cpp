#include "cli/calibrate/run_network.hpp"

#include "cli/calibrate/contention.hpp"
#include "cli/calibrate/fit.hpp"
#include "cli/calibrate/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace rubato::cli {
namespace {

/// Size of a message without a payload, which inquiries are in simulation (sim/run_actions.cpp); real ones are about as
/// small.
constexpr double control_bytes = 64;
/// More rows say no more about a link that many messages share.
constexpr std::size_t rows_max = 100'000;

/// Workers whose messages cross the network: where some run on other hosts than the server, those on its host move
/// theirs for nothing.
std::vector<bool> remote_workers(const RunTables& run) {
    std::vector<bool> remote;
    for (const auto& worker : run.workers) remote.push_back(worker.host != run.servers.front().host);
    if (std::none_of(remote.begin(), remote.end(), [](bool yes) { return yes; })) remote.assign(remote.size(), true);
    return remote;
}

struct Totals {
    double push_moving_s = 0, pull_moving_s = 0, request_s = 0;
    std::int64_t pushes = 0, pulls = 0, inquiries = 0;
};

Totals totals_of(const RunTables& run, const std::vector<bool>& remote) {
    Totals totals;
    for (std::size_t w = 0; w < remote.size(); ++w) {
        if (!remote[w]) continue;
        const WorkerTotals& worker = run.workers[w];
        totals.push_moving_s += worker.push_moving_s;
        totals.pull_moving_s += worker.pull_moving_s;
        totals.request_s += worker.pull_request_s;
        totals.inquiries += worker.inquiries;
        totals.pulls += worker.pulls;
        // Where rows are left out, the books tell: what is computed to its end is pushed, but for the last.
        if (run.scenario.trace.every > 1) totals.pushes += worker.gradients;
    }
    if (run.scenario.trace.every > 1) return totals;
    for (const auto& gradient : run.gradients) {
        if (remote[static_cast<std::size_t>(gradient.worker)] && gradient.push_s >= 0) ++totals.pushes;
    }
    return totals;
}

/// When pushes were handed to the network, ascending.
std::vector<double> push_starts(const RunTables& run, const std::vector<bool>& remote) {
    std::vector<double> starts;
    for (const auto& gradient : run.gradients) {
        if (remote[static_cast<std::size_t>(gradient.worker)] && gradient.push_s >= 0)
            starts.push_back(gradient.push_s);
    }
    std::sort(starts.begin(), starts.end());
    if (starts.size() > rows_max) starts.resize(rows_max);
    return starts;
}

/// When weights had arrived, backwards in time: a link that is shared evenly looks the same in that direction.
std::vector<double> pull_ends_reversed(const RunTables& run, const std::vector<bool>& remote) {
    std::vector<double> ends;
    for (std::size_t i = 1; i < run.gradients.size(); ++i) {
        const TimedGradient& before = run.gradients[i - 1];
        const TimedGradient& gradient = run.gradients[i];
        // On the weights of its last gradient a worker goes on without a message.
        if (before.worker != gradient.worker || before.read_version == gradient.read_version) continue;
        if (remote[static_cast<std::size_t>(gradient.worker)]) ends.push_back(-gradient.begin_s);
    }
    std::sort(ends.begin(), ends.end());
    if (ends.size() > rows_max) ends.resize(rows_max);
    return ends;
}

/// Whether each worker's messages had a link of their own, on whatever host it ran (execution.emulate.network).
bool own_links(const RunTables& run) {
    return run.backend != "sim" && run.scenario.emulate.network;
}

/// Transfers of one direction in timeline.csv.
std::vector<Transfer> transfers_of(const RunTables& run, const std::string& path, const std::string& kind) {
    std::map<std::string, std::int32_t> hosts;
    for (const auto& worker : run.workers) hosts.emplace(worker.host, static_cast<std::int32_t>(hosts.size()));
    const auto lambda = static_cast<std::int64_t>(run.workers.size());
    std::vector<Transfer> transfers;
    Table table(path, {"kind", "begin_ns", "end_ns", "bytes", "role", "peer"}, true);
    while (transfers.size() < rows_max && table.next()) {
        if (table.text(0) != kind) continue;
        const double begin = 1e-9 * table.number(1), end = 1e-9 * table.number(2);
        const std::int64_t role = std::max(table.whole(4), table.whole(5));
        if (role < 1 || role > lambda) table.refuse(4, "the server and one of the workers");
        const std::string& host = run.workers[static_cast<std::size_t>(role - 1)].host;
        if (end > begin) transfers.push_back({begin, end, table.number(3), hosts.at(host)});
    }
    return transfers;
}

/// Each took what it took, and the server's link bears one of each worker.
Unshared on_own_links(const RunTables& run, const std::vector<Transfer>& transfers) {
    Unshared alone;
    for (const auto& it : transfers) alone.seconds.push_back(it.end_s - it.begin_s);
    alone.capacity = static_cast<double>(run.workers.size());
    return alone;
}

/// Messages from the timeline; false where no transfer stands there.
bool from_timeline(const RunTables& run, double control_s, NetworkProfile& network, double& capacity,
                   std::vector<std::string>& notes) {
    const std::string path = (std::filesystem::path(run.directory) / "timeline.csv").string();
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return false;
    bool full = false;
    for (const char* kind : {"push", "pull"}) {
        const auto transfers = transfers_of(run, path, kind);
        if (transfers.empty()) continue;
        const Unshared alone = own_links(run) ? on_own_links(run, transfers) : unshared(transfers, control_s);
        capacity = std::max(capacity, alone.capacity);
        full = full || alone.saturated;
        std::vector<std::pair<double, double>> times;
        for (std::size_t i = 0; i < transfers.size(); ++i) times.emplace_back(transfers[i].bytes, alone.seconds[i]);
        for (const MessageTime& message : medians_by_size(std::move(times))) {
            if (message.bytes > 0 && message.seconds > 0) network.messages.push_back(message);
        }
    }
    if (capacity > 1 && !full && !own_links(run))
        notes.emplace_back(
            "network: the server's link was never full, and may bear more than server_bandwidth, which it has borne");
    return !network.messages.empty();
}

void from_totals(const RunTables& run, const std::vector<bool>& remote, const Totals& totals, double control_s,
                 NetworkProfile& network, std::vector<std::string>& notes) {
    const MessageSizes sizes = message_sizes(run);
    const SharedLink link{control_s, run.backend == "sim" ? run.scenario.cluster.network.concurrent_transfers : 0};
    const bool all_rows = run.scenario.trace.every == 1;
    const bool shared = all_rows && !own_links(run);
    const auto add = [&](double bytes, double mean_s, std::int64_t n, const std::vector<double>& starts) {
        if (!(mean_s > 0) || !(bytes > 0)) return;
        network.messages.push_back({bytes, shared ? alone_seconds(starts, link, mean_s) : mean_s, n});
    };
    if (totals.pushes > 0)
        add(sizes.push, totals.push_moving_s / static_cast<double>(totals.pushes), totals.pushes,
            push_starts(run, remote));
    if (totals.pulls > 0)
        add(sizes.pull, totals.pull_moving_s / static_cast<double>(totals.pulls), totals.pulls,
            pull_ends_reversed(run, remote));
    if (!network.messages.empty() && !own_links(run))
        notes.emplace_back(all_rows
                               ? "network: times of messages alone follow from their mean and when each was sent, as "
                                 "if they shared one link evenly; rubato run --timeline records each"
                               : "network: gradients.csv holds some rows only, so that what messages lost to each "
                                 "other is part of their times");
}

/// What an inquiry takes: asking for weights, less the server's work on the reply. 0: not known.
double control_seconds(const RunTables& run, const Totals& totals) {
    if (totals.inquiries == 0) return 0;
    const ServerTotals& server = run.servers.front();
    const double pull_s = server.replies > 0 ? server.pull_s / static_cast<double>(server.replies) : 0;
    return std::max(
        0.0, (totals.request_s - pull_s * static_cast<double>(totals.pulls)) / static_cast<double>(totals.inquiries));
}

/// Where messages with a payload take no longer than those without, as between threads that hand over addresses: the
/// latency that makes a push, an inquiry and a pull together as long as they were.
NetworkProfile of_latency(NetworkProfile network, const Totals& totals, double control_s,
                          std::vector<std::string>& notes) {
    const auto mean = [](double seconds, std::int64_t n) { return n > 0 ? seconds / static_cast<double>(n) : 0; };
    network.latency_s =
        (control_s + mean(totals.push_moving_s, totals.pushes) + mean(totals.pull_moving_s, totals.pulls)) / 3;
    constexpr double negligible = 0.01;
    network.bandwidth = network.bytes.largest / (negligible * network.latency_s);
    network.messages.insert(network.messages.begin(), {control_bytes, control_s, totals.inquiries});
    notes.emplace_back(
        "network: messages take no longer with a payload than without, so that all of their time counts as latency, "
        "and the bandwidth is only known to be large");
    return network;
}

/// What the messages of a run tell, for an inquiry of control_s (0: not known).
struct Seen {
    NetworkProfile network;
    double control_s = 0;
    double capacity = 0;  ///< of the server's link over a message's rate alone; 0: not known
    double fastest_s = 0;
    std::vector<std::string> notes;
};

Seen messages_of(const RunTables& run, const std::vector<bool>& remote, const Totals& totals, double control_s) {
    Seen seen;
    NetworkProfile& network = seen.network;
    network.source = "run";
    seen.control_s = control_s;
    if (!from_timeline(run, control_s, network, seen.capacity, seen.notes))
        from_totals(run, remote, totals, control_s, network, seen.notes);
    if (network.messages.empty()) {
        seen.notes.emplace_back(
            "network: no message of the run took any time, so that it says nothing about a network");
        seen.control_s = 0;
        return seen;
    }
    seen.fastest_s = network.messages.front().seconds;
    network.bytes = {network.messages.front().bytes, network.messages.front().bytes};
    for (const auto& message : network.messages) {
        network.bytes.smallest = std::min(network.bytes.smallest, message.bytes);
        network.bytes.largest = std::max(network.bytes.largest, message.bytes);
        seen.fastest_s = std::min(seen.fastest_s, message.seconds);
    }
    return seen;
}

}  // namespace

std::optional<NetworkProfile> network_of_run(const RunTables& run, std::vector<std::string>& notes) {
    if (run.workers.empty() || run.servers.empty()) return std::nullopt;
    const auto remote = remote_workers(run);
    const Totals totals = totals_of(run, remote);
    Seen seen = messages_of(run, remote, totals, control_seconds(run, totals));
    // In simulation, inquiries cannot take as long as messages; their replies have waited for others at a link.
    if (run.backend == "sim" && seen.control_s >= seen.fastest_s) seen = messages_of(run, remote, totals, 0);
    NetworkProfile& network = seen.network;
    notes.insert(notes.end(), seen.notes.begin(), seen.notes.end());
    if (network.messages.empty()) return std::nullopt;
    if (seen.control_s >= seen.fastest_s) return of_latency(std::move(network), totals, seen.control_s, notes);
    if (seen.control_s > 0 && network.bytes.smallest > control_bytes)
        network.messages.insert(network.messages.begin(), {control_bytes, seen.control_s, totals.inquiries});
    else if (network.bytes.smallest == network.bytes.largest)
        notes.emplace_back(
            fmt::format("network: messages of one size, {:.0f} bytes, do not tell latency and bandwidth "
                        "apart; all of their time counts as bandwidth",
                        network.bytes.smallest));
    const LineFit fit = fit_line(network.messages);
    network.latency_s = fit.fixed_s;
    network.bandwidth = fit.per_byte_s > 0 ? 1 / fit.per_byte_s : network.bytes.largest / seen.fastest_s;
    network.largest_error = fit.largest_error;
    if (seen.capacity > 1.001) network.server_bandwidth = seen.capacity * network.bandwidth;
    return std::move(network);
}

}  // namespace rubato::cli
