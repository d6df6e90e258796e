#include "cli/oddities.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace rubato::cli {
namespace {

constexpr double hour = 3600, day = 24 * hour;

class Finder {
public:
    Finder(const Loaded& loaded, const Estimate& plan) : loaded_(loaded), scenario_(loaded.scenario), plan_(plan) {}

    void look_at_routes(sim::Network& network, const sim::Placement& placement);
    void look_at_hosts(sim::Network& network, const sim::Placement& placement);
    void look_at_computing(const sim::Placement& placement);
    void look_at_faults(sim::Network& network, const sim::Placement& placement);
    void look_at_server();
    void look_at_learning();
    void look_at_messages();
    void look_at_size(double free_bytes);

    std::vector<std::string> found;

private:
    template <class... Values>
    void odd(fmt::format_string<Values...> format, Values&&... values) {
        found.push_back(fmt::format(format, std::forward<Values>(values)...));
    }
    const Loaded& loaded_;
    const Scenario& scenario_;
    const Estimate& plan_;
};

const std::string& host_name(sim::Network& network, const sim::Placement& placement, std::size_t role) {
    return network.hosts()[static_cast<std::size_t>(placement.host_of_role[role])].name;
}

bool by_flops(const sim::Placement& placement, std::size_t role) {
    return placement.device_of_role[role]->kind == DeviceSpec::Kind::flops;
}

/// The worst route in each respect stands for all.
void Finder::look_at_routes(sim::Network& network, const sim::Placement& placement) {
    double latency_max = 0, narrowest = INFINITY, widest = 0;
    std::size_t far = 0, narrow = 0, wide = 0;
    for (std::size_t role = 1; role < placement.host_of_role.size(); ++role) {
        const auto [bandwidth, latency] = network.route(placement.host_of_role[role], placement.host_of_role[0]);
        if (latency > latency_max) latency_max = latency, far = role;
        if (std::isinf(bandwidth)) continue;
        if (bandwidth < narrowest) narrowest = bandwidth, narrow = role;
        if (bandwidth > widest) widest = bandwidth, wide = role;
    }
    if (latency_max >= 1)
        odd("the route from host \"{}\" to the server has a latency of {}: a number without unit is seconds; "
            "\"{:.4g}us\" "
            "or \"{:.4g}ms\" may be meant",
            host_name(network, placement, far), seconds_text(latency_max), latency_max, latency_max);
    if (narrowest < 125e3)
        odd("the route from host \"{}\" to the server carries {}/s ({}): below 1 Mbps; a number without unit is "
            "bytes/s, "
            "and a prefix such as M or G may be missing",
            host_name(network, placement, narrow), bytes_text(narrowest), bits_text(narrowest));
    if (widest > 12.5e12)
        odd("the route from host \"{}\" to the server carries {}/s ({}): above 100 Tbps; Gbps is bits and GBps bytes, "
            "and "
            "a number without unit is bytes/s",
            host_name(network, placement, wide), bytes_text(widest), bits_text(widest));
}

void Finder::look_at_hosts(sim::Network& network, const sim::Placement& placement) {
    std::set<double> told;
    for (std::size_t role = 1; role <= static_cast<std::size_t>(scenario_.lambda()); ++role) {
        if (!by_flops(placement, role)) continue;
        const double speed = placement.site_of_role[role].speed;
        if ((speed >= 1e6 && speed <= 1e18) || !told.insert(speed).second) continue;
        odd("host \"{}\" computes {:.4g} flop/s: {}", host_name(network, placement, role), speed,
            speed < 1e6 ? "a prefix such as M or G may be missing (\"100Gf\")"
                        : "no machine does more than 1e18; \"100Gf\" is 1e11");
    }
}

void Finder::look_at_computing(const sim::Placement& placement) {
    const bool analytic =
        loaded_.scenario.model.gradients && scenario_.cost.model.empty() && !loaded_.tree.find("cost");
    std::set<std::string> told;
    for (std::size_t role = 1; role <= static_cast<std::size_t>(scenario_.lambda()); ++role) {
        const std::string& device = placement.device_name_of_role[role];
        if (told.contains(device)) continue;
        const double seconds = placement.seconds(static_cast<RoleId>(role), scenario_.workers.batch_size);
        const bool slow = seconds > hour;
        // The tiny models that learn in tests take less than a microsecond, and rightly so.
        const bool fast = seconds < 1e-6 && !(analytic && by_flops(placement, role));
        if (!slow && !fast) continue;
        told.insert(device);
        odd("device \"{}\" takes {} for a gradient of {} samples: {}", device, seconds_text(seconds),
            scenario_.workers.batch_size,
            by_flops(placement, role)
                ? fmt::format("{:.4g} flops a sample on a host of {:.4g} flop/s; one of the two may be off",
                              scenario_.cost.flops_per_sample, placement.site_of_role[role].speed)
            : slow ? "figures of devices are seconds; were milliseconds meant?"
                   : "figures of devices are seconds, of a whole batch");
    }
    for (const auto& [name, device] : scenario_.cluster.devices) {
        for (std::size_t i = 1; i < device.table.size(); ++i) {
            if (device.table[i].second >= device.table[i - 1].second) continue;
            odd("cluster.devices.{}: {:g} samples take {} but {:g} take only {}: the table is seconds of a whole batch",
                name, device.table[i - 1].first, seconds_text(device.table[i - 1].second), device.table[i].first,
                seconds_text(device.table[i].second));
            break;
        }
    }
    if (scenario_.cluster.noise.cv > 2)
        odd("cluster.noise.lognormal_cv is {:g}: it is a ratio, and 0.1 is 10 %", scenario_.cluster.noise.cv);
    const auto scatters = [](const auto& device) { return !device.second.shapes.empty(); };
    if (scenario_.cluster.noise.common.share > 0 && scenario_.cluster.noise.cv == 0 &&
        std::none_of(scenario_.cluster.devices.begin(), scenario_.cluster.devices.end(), scatters))
        odd("cluster.noise.common says what is common in the scatter of compute times, and nothing scatters: neither "
            "noise nor quantiles of a device are given");
}

/// A crash takes what a push would have carried.
void Finder::look_at_faults(sim::Network& network, const sim::Placement& placement) {
    const int push_every = scenario_.workers.communication.push_every;
    double worst = 1, worst_up_s = 0, worst_s = 0;
    std::size_t who = 0, others = 0;
    for (std::size_t role = 1; role <= static_cast<std::size_t>(scenario_.lambda()); ++role) {
        double crashes_per_s = 0;
        for (const FaultSpec& fault : scenario_.faults) {
            if (!(fault.every_s > 0)) continue;
            const auto crashes =
                std::count(fault.workers.begin(), fault.workers.end(), static_cast<int>(role) - 1) +
                std::count(fault.hosts.begin(), fault.hosts.end(), host_name(network, placement, role));
            crashes_per_s += static_cast<double>(crashes) / fault.every_s;
        }
        const double seconds = push_every * placement.seconds(static_cast<RoleId>(role), scenario_.workers.batch_size);
        if (!(seconds * crashes_per_s > 1)) continue;
        if (who != 0) ++others;
        if (seconds * crashes_per_s <= worst) continue;
        worst = seconds * crashes_per_s, worst_up_s = 1 / crashes_per_s, worst_s = seconds, who = role;
    }
    if (who == 0) return;
    odd("worker {}{} crashes after {} on average and takes {} for {}: few come to their end; every_s of faults is "
        "seconds",
        who - 1, others > 0 ? fmt::format(", as {} more,", others) : "", seconds_text(worst_up_s),
        seconds_text(worst_s), push_every > 1 ? fmt::format("the {} gradients of a push", push_every) : "a gradient");
}

void Finder::look_at_server() {
    const ServerCostSpec& server = scenario_.cluster.server;
    const CostSpec& cost = scenario_.cost;
    const auto look = [&](const std::string& key, double seconds, double per_byte) {
        if (seconds < 10) return;
        odd("cluster.server.{} {}: the server does nothing else so long; a number without unit is seconds",
            per_byte > 0 ? key + " and " + key + "_per_byte make" : key + " is", seconds_text(seconds));
    };
    const ExchangeCostSpec& exchange = scenario_.cluster.exchange;
    if (!scenario_.protocol.averages() && !scenario_.protocol.reduces() && exchange.send(1) + exchange.copy(1) > 0)
        odd("cluster.exchange: \"{}\" averages no models, and pays none of it", scenario_.protocol.name);
    look("push_s", server.push(cost), server.push_s_per_byte);
    look("pull_s", server.pull(cost), server.pull_s_per_byte);
    look("update_s", server.update(cost), server.update_s_per_byte);
}

void Finder::look_at_learning() {
    const std::int64_t batch = scenario_.workers.batch_size;
    const std::int64_t slice = scenario_.workers.slice_size();
    if (batch <= loaded_.samples && slice > loaded_.samples)
        odd("workers.communication.push_every times batch_size is {}, more than the {} training samples of an epoch: "
            "pushes carry fewer gradients",
            count_text(static_cast<double>(slice)), count_text(static_cast<double>(loaded_.samples)));
    if (batch > loaded_.samples)
        odd("workers.batch_size is {}, more than the {} training samples of an epoch: each batch is cut to them", batch,
            count_text(static_cast<double>(loaded_.samples)));
    if (!scenario_.model.gradients) return;
    const double rate = scenario_.optimizer.learning_rate;
    if (rate > 100) odd("optimizer.learning_rate is {:g}: such steps diverge; rates are mostly below 1", rate);
    if (rate == 0) odd("optimizer.learning_rate is 0: nothing is learned");
    const auto& every = scenario_.evaluate.every_epochs;
    if (every && scenario_.stop.epochs && *every > *scenario_.stop.epochs)
        odd("evaluate.every_epochs is {:g}, beyond the end of the run at {:g} epochs", *every, *scenario_.stop.epochs);
}

void Finder::look_at_messages() {
    const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (!(memory > 0)) return;
    const auto largest = static_cast<double>(std::max(scenario_.cost.push_bytes, scenario_.cost.pull_bytes));
    if (largest > memory)
        odd("a message of {} is larger than this machine's memory ({}): sizes without unit are bytes, and float32 "
            "takes 4 "
            "a weight",
            bytes_text(largest), bytes_text(memory));
    // A version of the weights at the server and, for each worker, the one that it reads and its gradient.
    const double vectors = 2.0 * scenario_.lambda() + 2;
    const double needed = 4.0 * static_cast<double>(loaded_.parameters) * vectors;
    if (scenario_.model.gradients && needed > memory)
        odd("weights and gradients of {} workers take about {}, and this machine has {} of memory", scenario_.lambda(),
            bytes_text(needed), bytes_text(memory));
}

void Finder::look_at_size(double free_bytes) {
    const double wall = wall_seconds(loaded_, plan_);
    if (wall > day)
        odd("the simulation would take roughly {}: {} gradients and {} messages; stop.epochs, stop.updates or "
            "stop.gradients may be too large",
            seconds_text(wall), count_text(*plan_.gradients), count_text(*plan_.messages));
    if (plan_.disk_bytes && free_bytes >= 0 && *plan_.disk_bytes > free_bytes)
        odd("the run would write about {}, and {} are free: trace.gradients {{\"every\": 100}} thins the largest "
            "table, and "
            "trace.events is larger still",
            bytes_text(*plan_.disk_bytes), bytes_text(free_bytes));
}

}  // namespace

std::vector<std::string> oddities(const Loaded& loaded, const Estimate& plan, sim::Network& network,
                                  const sim::Placement& placement, double free_bytes) {
    Finder finder(loaded, plan);
    finder.look_at_routes(network, placement);
    finder.look_at_hosts(network, placement);
    finder.look_at_computing(placement);
    finder.look_at_faults(network, placement);
    finder.look_at_server();
    finder.look_at_learning();
    finder.look_at_messages();
    finder.look_at_size(free_bytes);
    return finder.found;
}

std::vector<std::string> oddities(const Loaded& loaded, const Estimate& plan, double free_bytes) {
    Finder finder(loaded, plan);
    finder.look_at_learning();
    finder.look_at_size(free_bytes);
    return finder.found;
}

double free_bytes(const std::string& folder) {
    struct statvfs disk {};
    if (statvfs(folder.c_str(), &disk) != 0) return -1;
    return static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

std::string bits_text(double bytes_per_s) {
    const char* units[] = {"bps", "kbps", "Mbps", "Gbps", "Tbps", "Pbps"};
    double bits = 8 * bytes_per_s;
    int unit = 0;
    for (; bits >= 1000 && unit < 5; ++unit) bits /= 1000;
    return fmt::format("{:.4g} {}", bits, units[unit]);
}

}  // namespace rubato::cli
