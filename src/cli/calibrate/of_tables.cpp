#include "cli/calibrate/of_tables.hpp"

#include "cli/calibrate/fit.hpp"
#include "cli/calibrate/table.hpp"
#include "cli/error.hpp"
#include "cli/json_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rubato::cli {
namespace {

constexpr double seconds_max = 1e6;

double positive_seconds(const Table& table, std::size_t column) {
    const double seconds = table.number(column);
    if (!(seconds > 0) || seconds > seconds_max) table.refuse(column, "seconds above 0 and at most 1000000");
    return seconds;
}

}  // namespace

std::map<std::string, DeviceProfile> devices_of_timings(const std::string& path) {
    Table table(path, {"device", "batch", "seconds"});
    std::map<std::string, std::map<std::int64_t, std::vector<double>>> times;
    while (table.next()) {
        const std::string& device = table.text(0);
        if (device.empty() || !is_utf8(device) || device == "comment") table.refuse(0, "the name of a device class");
        const std::int64_t batch = table.whole(1);
        if (batch < 1 || batch > 999'999'999) table.refuse(1, "a batch size from 1 to 999999999");
        times[device][batch].push_back(positive_seconds(table, 2));
    }
    if (times.empty()) throw InputError(path + ": expected a row for each gradient that was timed, found none");
    std::map<std::string, DeviceProfile> devices;
    for (auto& [name, batches] : times) {
        DeviceProfile& device = devices[name];
        device.source = "timings";
        for (auto& [batch, seconds] : batches) device.batches[batch] = compute_times(seconds);
    }
    return devices;
}

NetworkProfile network_of_times(std::vector<std::pair<double, double>> times, const std::string& source,
                                const std::string& what, std::vector<std::string>& notes) {
    NetworkProfile network;
    network.source = source;
    network.messages = medians_by_size(std::move(times));
    const double smallest = network.messages.front().bytes, largest = network.messages.back().bytes;
    if (!(largest > 0)) throw InputError(what + ": all messages are of 0 bytes; a bandwidth needs larger ones");
    network.bytes = {smallest, largest};
    const LineFit fit = fit_line(network.messages);
    if (!(fit.per_byte_s > 0))
        throw InputError(what + ": messages of " + fmt::format("{:.0f}", largest) +
                         " bytes take no longer than those of " + fmt::format("{:.0f}", smallest) +
                         ", so that there is no bandwidth to be told; measure larger ones");
    network.latency_s = fit.fixed_s;
    network.bandwidth = 1 / fit.per_byte_s;
    network.largest_error = fit.largest_error;
    if (network.messages.size() == 1)
        notes.push_back(
            fmt::format("network: messages of one size, {:.0f} bytes, do not tell latency and bandwidth "
                        "apart; all of their time counts as bandwidth",
                        largest));
    constexpr double large = 0.25;
    if (fit.largest_error > large)
        notes.push_back(
            fmt::format("network: times lie up to {:.0f} % off the line of latency and bandwidth; cut the "
                        "table to the sizes that matter for a closer one",
                        100 * fit.largest_error));
    return network;
}

NetworkProfile network_of_table(const std::string& path, std::vector<std::string>& notes) {
    Table table(path, {"bytes", "seconds"});
    std::vector<std::pair<double, double>> times;
    while (table.next()) {
        const double bytes = table.number(0);
        if (bytes < 0 || bytes > 1e18) table.refuse(0, "bytes from 0 to 1e18");
        times.emplace_back(bytes, positive_seconds(table, 1));
    }
    if (times.empty()) throw InputError(path + ": expected a row for each message that was timed, found none");
    return network_of_times(std::move(times), "network", path, notes);
}

}  // namespace rubato::cli
