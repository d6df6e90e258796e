// rubato check: a scenario, explained.
#include "cli/backends.hpp"
#include "cli/commands.hpp"
#include "cli/estimate.hpp"
#include "cli/exit_status.hpp"
#include "cli/faults.hpp"
#include "cli/guarantees.hpp"
#include "cli/hostfile.hpp"
#include "cli/layer_costs.hpp"
#include "cli/log.hpp"
#include "cli/oddities.hpp"
#include "cli/optimizer_text.hpp"
#include "cli/placed.hpp"
#include "cli/protocol_text.hpp"
#include "cli/resume.hpp"
#include "cli/run_directory.hpp"
#include "cli/sweep/ranks.hpp"
#include "cli/tree_text.hpp"
#include "core/tree.hpp"
#include "sim/driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rubato::cli {
namespace {

void row(const std::string& label, const std::string& text) {
    fmt::print("{:<12}{}\n", label, text);
}

double seconds_of(Time time) {
    return static_cast<double>(time) * 1e-9;
}

void print_roles(const Scenario& scenario, std::int64_t parameters, const sim::Placement& placement,
                 const std::vector<sim::HostInfo>& hosts) {
    const auto host = [&](RoleId role) -> const sim::HostInfo& {
        return hosts[static_cast<std::size_t>(placement.host_of_role[static_cast<std::size_t>(role)])];
    };
    if (scenario.topology == "sharded") {
        const auto shards = shard_lines(scenario, parameters, placement, hosts);
        for (std::size_t i = 0; i < shards.size(); ++i) row(i == 0 ? "servers" : "", shards[i]);
    } else {
        row("server", "on " + host(0).name);
    }
    const auto relays = relay_lines(scenario, placement, hosts);
    for (std::size_t i = 0; i < relays.size(); ++i) row(i == 0 ? "relays" : "", relays[i]);
    if (const std::string feeds = feeds_text(scenario); !feeds.empty()) row("weights", "from " + feeds);
    // Workers that are alike share a line, and many lines are cut short.
    constexpr int lines_max = 12;
    const auto seat = [](int worker) { return static_cast<std::size_t>(worker) + 1; };
    const auto alike = [&](int a, int b) {
        return placement.device_name_of_role[seat(a)] == placement.device_name_of_role[seat(b)] &&
               placement.workers_on_host_of_role[seat(a)] == placement.workers_on_host_of_role[seat(b)] &&
               placement.group_of_role[seat(a)]->devices == placement.group_of_role[seat(b)]->devices &&
               placement.group_of_role[seat(a)]->sum_s == placement.group_of_role[seat(b)]->sum_s &&
               host(a + 1).speed == host(b + 1).speed;
    };
    const int lambda = scenario.lambda();
    int lines = 0;
    for (int first = 0, last = 0; first < lambda; first = last + 1) {
        if (lines == lines_max) return row("", fmt::format("... and {} more", lambda - first));
        for (last = first; last + 1 < lambda && alike(first, last + 1);) ++last;
        const bool one_host = placement.host_of_role[seat(first)] == placement.host_of_role[seat(last)];
        const std::string who =
            first == last ? fmt::format("worker {}", first) : fmt::format("workers {}-{}", first, last);
        const std::string where = host(first + 1).name + (one_host ? "" : " to " + host(last + 1).name);
        const int devices = placement.group_of_role[seat(first)]->devices;
        row(lines++ == 0 ? "workers" : "",
            fmt::format("{} on {} ({} a host), {} {}: {} a gradient of {} samples", who, where,
                        placement.workers_on_host_of_role[seat(first)],
                        devices > 1 ? fmt::format("{} devices each,", devices) : "device",
                        placement.device_name_of_role[seat(first)],
                        seconds_text(placement.seconds(first + 1, scenario.workers.batch_size)),
                        scenario.workers.batch_size));
    }
}

/// Of a worker among the workers, or of a relay among the relays.
int number(RoleId role, int lambda) {
    return role > lambda ? role - lambda - 1 : role - 1;
}

/// Workers, and relays, whose routes are alike share a line; see print_roles.
void print_routes(const Scenario& scenario, const Shards& shards, sim::Network& network,
                  const sim::Placement& placement) {
    constexpr int lines_max = 12;
    const Tree tree = make_tree(scenario);
    const int lambda = scenario.lambda();
    const int last_role = lambda + static_cast<int>(tree.relays().size());
    // Of several shards the largest one takes longest.
    const int largest = largest_shard(shards);
    const auto parent = [&](RoleId role) {
        if (shards.any()) return shards.role(largest);
        return role > lambda ? tree.relay(role).parent : tree.server_of(role - 1);
    };
    const auto bytes = [&](std::int64_t whole) {
        return static_cast<double>(shards.any() ? shards.bytes(whole, shards.range(largest)) : whole);
    };
    const std::string shard = fmt::format("shard {}", largest);
    const auto host = [&](RoleId role) { return placement.host_of_role[static_cast<std::size_t>(role)]; };
    const auto route = [&](RoleId role) { return network.route(host(role), host(parent(role))); };
    const auto alike = [&](RoleId a, RoleId b) {
        return (a > lambda) == (b > lambda) && (parent(a) == 0) == (parent(b) == 0) && route(a) == route(b);
    };
    int lines = 0;
    for (RoleId first = 1, last = 0; first <= last_role; first = last + 1) {
        if (lines == lines_max) return row("", fmt::format("... and those of {} more roles", last_role - first + 1));
        for (last = first; last < last_role && alike(first, last + 1);) ++last;
        const std::string who = (first > lambda ? "relay" : "worker") +
                                (first == last ? fmt::format(" {}", number(first, lambda))
                                               : fmt::format("s {}-{}", number(first, lambda), number(last, lambda)));
        const auto [bandwidth, latency] = route(first);
        const sim::HostId from = host(first), to = host(parent(first));
        const double push = seconds_of(network.control_delay(from, to, bytes(scenario.cost.push_bytes)));
        const double pull = seconds_of(network.control_delay(to, from, bytes(scenario.cost.pull_bytes)));
        const char* whom = shards.any()         ? shard.c_str()
                           : parent(first) == 0 ? "server"
                           : first > lambda     ? "the relay above"
                                                : "the leaf above";
        const std::string width =
            std::isinf(bandwidth)
                ? (parent(first) == 0 && !shards.any() ? "on the server's host" : "on the same host")
                : fmt::format("{}/s ({}), {}", bytes_text(bandwidth), bits_text(bandwidth), seconds_text(latency));
        row(lines++ == 0 ? "routes" : "",
            fmt::format("{} to {}: {}; alone {} takes {}, weights back {}", who, whom, width,
                        shards.any() ? "its part" : "a gradient", seconds_text(push), seconds_text(pull)));
    }
}

void print_network(const Scenario& scenario, const Shards& shards, sim::Network& network,
                   const sim::Placement& placement) {
    const NetworkSpec& spec = scenario.cluster.network;
    const std::string cap = spec.concurrent_transfers > 0 ? std::to_string(spec.concurrent_transfers) : "any number of";
    row("network", fmt::format("{}, {} transfers at once in a direction of a host's link",
                               spec.model == "flow" ? "flow, sharing as CM02" : spec.model + " " + spec.simgrid, cap));
    print_routes(scenario, shards, network, placement);
    const ServerCostSpec& server = scenario.cluster.server;
    const CostSpec cost = cost_of(scenario, shards, largest_shard(shards));
    row("server cost", fmt::format("{} a push, {} a pull, {} an update{}", seconds_text(server.push(cost)),
                                   seconds_text(server.pull(cost)), seconds_text(server.update(cost)),
                                   shards.any() ? fmt::format(", of shard {}", largest_shard(shards)) : ""));
}

void print_faults(const Scenario& scenario) {
    constexpr std::size_t lines_max = 12;
    const auto sentences = fault_sentences(scenario);
    const std::size_t faults = scenario.faults.size();
    for (std::size_t i = 0; i < sentences.size(); ++i) {
        if (i < std::min(faults, lines_max) || i >= faults) row(i == 0 ? "faults" : "", sentences[i]);
        if (i == lines_max && i < faults) row("", fmt::format("... and {} more", faults - lines_max));
    }
}

void print_data(const Loaded& loaded, const Estimate& plan) {
    const Scenario& scenario = loaded.scenario;
    constexpr const char* modes[] = {"shared-epoch", "strided", "random", "sharded"};
    row("data", fmt::format("{}, {} training samples an epoch", scenario.data.dataset,
                            count_text(static_cast<double>(loaded.samples))));
    row("batches",
        fmt::format("{}: {} slices an epoch, {} samples each, the last {}; global batch {}, {} samples {}",
                    modes[static_cast<int>(scenario.data.sampling)], count_text(static_cast<double>(plan.slices)),
                    std::min<std::int64_t>(scenario.workers.slice_size(), loaded.samples), plan.last_slice,
                    static_cast<std::int64_t>(scenario.lambda()) * scenario.workers.batch_size,
                    static_cast<std::int64_t>(plan.per_update) * scenario.workers.slice_size(),
                    scenario.protocol.gossips() ? "between hand-overs" : "an update"));
    if (const auto text = pipeline_text(scenario); !text.empty()) row("pipeline", text);
    if (const auto text = communication_text(scenario); !text.empty()) row("interval", text);
    const std::string weights = loaded.parameters > 0 ? fmt::format("{}, {} parameters", scenario.model.name,
                                                                    count_text(static_cast<double>(loaded.parameters)))
                                                      : "none";
    row("model", weights + (scenario.model.gradients ? "" : " (timing only: no gradients are computed)"));
    const std::string source = scenario.cost.model.empty() ? loaded.tree.find("cost") ? "cost" : "the model's own"
                                                           : "cost model " + scenario.cost.model;
    row("messages",
        fmt::format("gradient {}, weights {} ({})", bytes_text(static_cast<double>(scenario.cost.push_bytes)),
                    bytes_text(static_cast<double>(scenario.cost.pull_bytes)), source));
    const Node* cost = loaded.tree.find("cost");
    if (cost && cost->find("layers")) row("layers", layers_text(scenario));
}

std::string stop_text(const StopSpec& stop) {
    std::string text;
    const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", or ") + part; };
    if (stop.epochs) add(fmt::format("{:.6g} epochs", *stop.epochs));
    if (stop.updates) add(count_text(static_cast<double>(*stop.updates)) + " updates");
    if (stop.gradients) add(count_text(static_cast<double>(*stop.gradients)) + " gradients");
    if (stop.seconds) add(seconds_text(*stop.seconds));
    if (stop.target) add(fmt::format("{} at most {:.4g}", stop.target->metric, stop.target->at_most));
    return text + (stop.on_divergence ? "; a run that diverges stops" : "; a run that diverges goes on");
}

/// Every round waits for the slowest worker, whose model is on its way while nobody computes, unless fragments are
/// streamed. Elastic workers wait for nobody.
double least_seconds_of_steps(const Scenario& scenario, const Estimate& plan, sim::Network& network,
                              const sim::Placement& placement) {
    double slowest = 0, moving = 0, rate = 0;
    const double steps = *plan.gradients / scenario.lambda();
    for (RoleId role = 1; role <= scenario.lambda(); ++role) {
        const sim::HostId host = placement.host_of_role[static_cast<std::size_t>(role)];
        const auto bytes = static_cast<double>(scenario.cost.push_bytes);
        if (const double seconds = placement.seconds(role, scenario.workers.batch_size); seconds > 0)
            rate += 1 / seconds;
        slowest = std::max(slowest, steps * placement.seconds(role, scenario.workers.batch_size));
        if (role == 1) moving = seconds_of(network.control_delay(host, placement.host_of_role.front(), bytes));
    }
    if (scenario.protocol.reduces()) return slowest;
    if (!scenario.protocol.averages_in_rounds()) return rate > 0 ? *plan.gradients / rate : 0;
    if (scenario.protocol.streams()) return slowest;
    return slowest + *plan.updates * moving;
}

/// What cannot be beaten: a worker computes and pushes one after the other, unless it overlaps them, what all routes to
/// the server share carries every push, and the server takes its time for each.
double least_seconds(const Scenario& scenario, const Shards& shards, const Estimate& plan, sim::Network& network,
                     const sim::Placement& placement) {
    if (scenario.protocol.averages() || scenario.protocol.reduces())
        return least_seconds_of_steps(scenario, plan, network, placement);
    const int largest = largest_shard(shards);
    const CostSpec cost = cost_of(scenario, shards, largest);
    const auto push_bytes = static_cast<double>(cost.push_bytes);
    const RoleId server_role = shards.any() ? shards.role(largest) : 0;
    const sim::HostId server_host = placement.host_of_role[static_cast<std::size_t>(server_role)];
    const Tree tree = make_tree(scenario);
    const CommunicationSpec& communication = scenario.workers.communication;
    const double every = communication.push_every;
    double rate = 0;
    for (RoleId role = 1; role <= scenario.lambda(); ++role) {
        const sim::HostId host = placement.host_of_role[static_cast<std::size_t>(role)];
        const sim::HostId server =
            placement.host_of_role[static_cast<std::size_t>(shards.any() ? server_role : tree.server_of(role - 1))];
        const double compute = every * placement.seconds(role, scenario.workers.batch_size);
        const double push = seconds_of(network.control_delay(host, server, push_bytes));
        const double cycle = scenario.workers.overlaps() ? std::max(compute, push) : compute + push;
        if (!(cycle > 0)) return 0;
        rate += 1 / cycle;
    }
    if (!tree.star()) return *plan.pushes / rate;
    const auto first = placement.host_of_role.begin() + 1;
    const std::vector<sim::HostId> hosts(first, first + scenario.lambda());
    const double link = *plan.pushes * push_bytes / network.common_bandwidth(hosts, server_host);
    const ServerCostSpec& server = scenario.cluster.server;
    const double apply = *plan.pushes * (server.push(cost) + server.pull(cost) / communication.pull_every) +
                         *plan.updates * server.update(cost);
    return std::max({*plan.pushes / rate, link, apply});
}

/// What a real run needs: ranks, hosts, and the command that starts it.
void print_real_run(const Scenario& scenario, const std::string& path, const std::vector<HostSlots>& hosts) {
    if (!scenario.model.gradients) return;
    const int ranks = ranks_needed(scenario);
    row("real run", launch_command(scenario, path, hosts));
    if (hosts.empty()) {
        if (usable_cores() < ranks)
            row("", fmt::format("{} ranks on {} cores: they take turns, and its times are those of that", ranks,
                                usable_cores()));
        return;
    }
    const auto names = rank_hosts(ranks, hosts);
    for (std::size_t first = 0; first < names.size();) {
        std::size_t last = first;
        while (last + 1 < names.size() && names[last + 1] == names[first]) ++last;
        row("", first == last ? fmt::format("rank {} on {}", first, names[first])
                              : fmt::format("ranks {} to {} on {}", first, last, names[first]));
        first = last + 1;
    }
}

void print_head(const Scenario& scenario, const Loaded& loaded) {
    row("scenario", scenario.name + ", would run to " + default_directory(loaded, "sim"));
    if (scenario.protocol.warm_epochs > 0) row("warm start", warm_start_text(scenario));
    row("protocol", protocol_text(scenario));
    row("topology", topology_text(scenario));
}

void print_rest(const Loaded& loaded, const Estimate& plan) {
    const Scenario& scenario = loaded.scenario;
    print_data(loaded, plan);
    row("optimizer", optimizer_text(scenario.optimizer));
    row("rule", rate_text(scenario.optimizer));
    if (scenario.model.gradients)
        if (const auto text = optimizer_memory_text(scenario, loaded.parameters); !text.empty()) row("memory", text);
    row("stop", stop_text(scenario.stop));
    const auto sentences = guarantees(scenario);
    for (std::size_t i = 0; i < sentences.size(); ++i) row(i == 0 ? "guarantees" : "", sentences[i]);
}

int check_schedule(const Loaded& loaded) {
    const Scenario& scenario = loaded.scenario;
    const Estimate plan = estimate(loaded);
    for (const auto& text : oddities(loaded, plan, free_bytes("."))) warn(text);
    print_head(scenario, loaded);
    row("schedule", scenario.schedule.trace + ": no cluster, an update a second of virtual time");
    print_rest(loaded, plan);
    if (!plan.gradients) return exit_finished;
    row("estimate", fmt::format("at most {} gradients and {} updates (by {})", count_text(*plan.gradients),
                                count_text(*plan.updates), plan.limited_by));
    row("", fmt::format("roughly {} to compute here; about {} on disk", seconds_text(wall_seconds(loaded, plan)),
                        bytes_text(*plan.disk_bytes)));
    return exit_finished;
}

}  // namespace

int check_command(const std::string& path, const std::vector<std::string>& sets, const std::string& hostfile) {
    const auto real_hosts = hostfile.empty() ? std::vector<HostSlots>() : read_hostfile(hostfile);
    const Loaded loaded = load_scenario(path, sets);
    for (const auto& text : loaded.notes) note(text);
    require_files(loaded);
    const Scenario& scenario = loaded.scenario;
    if (!scenario.schedule.trace.empty()) return check_schedule(loaded);
    const auto opened = with_place(loaded, [&] { return std::make_unique<sim::Simulation>(scenario); });
    auto& simulation = *opened;
    for (const auto& text : simulation.warnings()) warn(text);
    auto& network = simulation.network();
    const auto& placement = simulation.placement();
    const Estimate plan = estimate(loaded);

    for (const auto& text : oddities(loaded, plan, network, placement, free_bytes("."))) warn(text);
    const Shards shards = make_shards(scenario, loaded.parameters);
    // Before the first line is printed, as it throws where virtual time has no room for a message.
    const double least = plan.gradients ? least_seconds(scenario, shards, plan, network, placement) : 0;
    print_head(scenario, loaded);
    print_roles(scenario, loaded.parameters, placement, network.hosts());
    print_network(scenario, shards, network, placement);
    print_faults(scenario);
    print_rest(loaded, plan);
    print_real_run(scenario, path, real_hosts);
    row("resume", resume_sentence(scenario));
    if (!plan.gradients) {
        row("estimate", "none: only time or a target ends the run");
        return exit_finished;
    }
    // Without rounds the end of the run finds workers with steps that are in no joint model yet.
    const auto& protocol = scenario.protocol;
    const bool beyond = protocol.averages_alone() || protocol.averages_in_parts() || protocol.gossips();
    row("estimate", fmt::format("{} {} gradients and {} updates (by {}), {} messages, {} over the network",
                                beyond ? "about" : "at most", count_text(*plan.gradients), count_text(*plan.updates),
                                plan.limited_by, count_text(*plan.messages), bytes_text(*plan.network_bytes)));
    if (beyond) row("", "steps that are in no joint model when the run ends come on top");
    if (traits_of(scenario).drops)
        row("", "gradients that are dropped or given up come on top: each is computed again");
    row("", fmt::format("at least {} of virtual time; roughly {} to simulate here; about {} on disk",
                        seconds_text(least), seconds_text(wall_seconds(loaded, plan)), bytes_text(*plan.disk_bytes)));
    return exit_finished;
}

}  // namespace rubato::cli
