#include "cli/emulate.hpp"

#include "core/tree.hpp"

#include "sim/driver.hpp"
#include "sim/noise.hpp"
#include "sim/pace.hpp"

namespace rubato::cli {
namespace {

/// A simulation that is never run: it places the workers and knows what a gradient costs where.
struct Machine {
    Scenario scenario;
    sim::Simulation simulation;
    sim::Noise noise;
    sim::Pace pace;
    explicit Machine(const Scenario& given)
        : scenario(with_flow(given)), simulation(scenario), noise(scenario, &simulation.placement()), pace(scenario) {}

    /// SimGrid's library and that of MPI do not go together in one process.
    static Scenario with_flow(Scenario scenario) {
        scenario.cluster.network.model = "flow";
        return scenario;
    }
};

void add_routes(const Scenario& scenario, sim::Simulation& simulation, trace::EmulatedCosts& costs) {
    const Tree tree = make_tree(scenario);
    const int lambda = scenario.lambda();
    const auto& hosts = simulation.placement().host_of_role;
    const auto route = [&](sim::HostId from, sim::HostId to) {
        const auto [bytes_per_s, latency_s] = simulation.network().route(from, to);
        return trace::EmulatedCosts::Route{bytes_per_s, latency_s};
    };
    const auto add = [&](RoleId below, RoleId above) {
        const auto here = hosts[static_cast<std::size_t>(below)], there = hosts[static_cast<std::size_t>(above)];
        costs.to_server.push_back(route(here, there));
        costs.from_server.push_back(route(there, here));
    };
    if (costs.shards.any()) {
        for (RoleId worker = 1; worker <= lambda; ++worker)
            for (int shard = 0; shard < costs.shards.count(); ++shard) add(worker, costs.shards.role(shard));
        return;
    }
    for (RoleId role = 1; role < static_cast<RoleId>(hosts.size()); ++role)
        add(role, role <= lambda ? tree.server_of(role - 1) : tree.relay(role).parent);
}

std::vector<trace::EmulatedCosts::ServerSeconds> server_seconds(const Scenario& scenario, const Shards& shards) {
    std::vector<trace::EmulatedCosts::ServerSeconds> seconds;
    for (int shard = 0; shard < shards.count(); ++shard) {
        const CostSpec cost = cost_of(scenario, shards, shard);
        const ServerCostSpec& server = scenario.cluster.server;
        seconds.push_back({server.push(cost), server.pull(cost), server.update(cost)});
    }
    return seconds;
}

}  // namespace

std::unique_ptr<trace::EmulatedCosts> emulated_costs(const Scenario& scenario, std::int64_t parameters) {
    const EmulateSpec& emulate = scenario.emulate;
    if (!emulate.any()) return nullptr;
    auto costs = std::make_unique<trace::EmulatedCosts>();
    costs->shards = make_shards(scenario, parameters);
    costs->servers.resize(static_cast<std::size_t>(costs->shards.count()));
    costs->slow.assign(static_cast<std::size_t>(scenario.lambda()), 1);
    for (const auto& [worker, factor] : emulate.slow) costs->slow[static_cast<std::size_t>(worker)] = factor;
    if (emulate.messages) {
        costs->push_bytes = scenario.cost.push_bytes;
        costs->pull_bytes = scenario.cost.pull_bytes;
    }
    if (!emulate.compute && !emulate.network) return costs;
    const auto machine = std::make_shared<Machine>(scenario);
    if (emulate.network) add_routes(scenario, machine->simulation, *costs);
    if (!emulate.compute) return costs;
    costs->compute_s = [machine](RoleId role, std::int64_t worker_seq, std::int32_t samples, Time begin_ns) {
        const auto& placement = machine->simulation.placement();
        const double seconds = placement.device_seconds(role, samples);
        const double factor = machine->noise.factor({role, worker_seq, samples, begin_ns, seconds});
        return machine->pace.seconds(role, worker_seq, begin_ns, seconds * factor + placement.sum_seconds(role));
    };
    costs->servers = server_seconds(scenario, costs->shards);
    return costs;
}

}  // namespace rubato::cli
