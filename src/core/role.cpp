#include "core/role.hpp"

#include <algorithm>
#include <cmath>

namespace rubato {

namespace {

template <class Held>
Held& content(Boxed<Held>& role) {
    return *role;
}
template <class Held>
const Held& content(const Boxed<Held>& role) {
    return *role;
}
template <class Role>
Role& content(Role& role) {
    return role;
}

}  // namespace

void step(Role& role, Time now, const Event& event, Actions& actions) {
    std::visit([&](auto& member) { content(member).step(now, event, actions); }, role);
}

std::string waiting(const Role& role) {
    return std::visit([](const auto& member) { return content(member).waiting(); }, role);
}

std::string describe(const Role& role) {
    return std::visit([](const auto& member) { return content(member).describe(); }, role);
}

const ServerState* saved_state(const Role& role) {
    if (const auto* server = std::get_if<Boxed<Server>>(&role)) return (**server).saved();
    if (const auto* driver = std::get_if<Boxed<AverageDriver>>(&role)) return (**driver).saved();
    if (const auto* server = std::get_if<Boxed<ElasticServer>>(&role)) return (**server).saved();
    if (const auto* driver = std::get_if<Boxed<PhaseDriver>>(&role)) return (**driver).saved();
    if (const auto* monitor = std::get_if<Boxed<GossipMonitor>>(&role)) return (**monitor).saved();
    if (const auto* monitor = std::get_if<Boxed<CollectiveMonitor>>(&role)) return (**monitor).saved();
    return nullptr;
}

WorkerRow books(const Role& role, Time now) {
    if (const auto* worker = std::get_if<Worker>(&role)) return worker->books(now);
    if (const auto* worker = std::get_if<Boxed<OverlapWorker>>(&role)) return (**worker).books(now);
    if (const auto* worker = std::get_if<Boxed<ShardWorker>>(&role)) return (**worker).books(now);
    if (const auto* worker = std::get_if<Boxed<AverageWorker>>(&role)) return (**worker).books(now);
    if (const auto* worker = std::get_if<Boxed<ElasticWorker>>(&role)) return (**worker).books(now);
    if (const auto* worker = std::get_if<Boxed<PhaseWorker>>(&role)) return (**worker).books(now);
    if (const auto* worker = std::get_if<Boxed<GossipWorker>>(&role)) return (**worker).books(now);
    if (const auto* worker = std::get_if<Boxed<StreamWorker>>(&role)) return (**worker).books(now);
    if (const auto* worker = std::get_if<Boxed<CollectiveWorker>>(&role)) return (**worker).books(now);
    return {};
}

std::int64_t gradients_begun(const Role& role) {
    if (const auto* worker = std::get_if<Worker>(&role)) return worker->begun();
    if (const auto* worker = std::get_if<Boxed<OverlapWorker>>(&role)) return (**worker).begun();
    if (const auto* worker = std::get_if<Boxed<ShardWorker>>(&role)) return (**worker).begun();
    if (const auto* worker = std::get_if<Boxed<AverageWorker>>(&role)) return (**worker).begun();
    if (const auto* worker = std::get_if<Boxed<ElasticWorker>>(&role)) return (**worker).begun();
    if (const auto* worker = std::get_if<Boxed<PhaseWorker>>(&role)) return (**worker).begun();
    if (const auto* worker = std::get_if<Boxed<GossipWorker>>(&role)) return (**worker).begun();
    if (const auto* worker = std::get_if<Boxed<StreamWorker>>(&role)) return (**worker).begun();
    if (const auto* worker = std::get_if<Boxed<CollectiveWorker>>(&role)) return (**worker).begun();
    return 0;
}

std::string role_name(RoleId role, int lambda, bool sharded) {
    if (sharded && (role == 0 || role > lambda)) return "shard " + std::to_string(role == 0 ? 0 : role - lambda);
    if (role > lambda) return "relay " + std::to_string(role - lambda - 1);
    return role == 0 ? "server" : "worker " + std::to_string(role - 1);
}

std::string role_name(RoleId role, const Scenario& scenario) {
    return role_name(role, scenario.lambda(), scenario.topology == "sharded");
}

int workers_among(const std::vector<Role>& roles) {
    return static_cast<int>(std::count_if(roles.begin(), roles.end(), [](const Role& it) {
        return !std::holds_alternative<Boxed<Server>>(it) && !std::holds_alternative<Boxed<Relay>>(it) &&
               !std::holds_alternative<Boxed<AverageDriver>>(it) && !std::holds_alternative<Boxed<ElasticServer>>(it) &&
               !std::holds_alternative<Boxed<PhaseDriver>>(it) && !std::holds_alternative<Boxed<GossipMonitor>>(it) &&
               !std::holds_alternative<Boxed<CollectiveMonitor>>(it);
    }));
}

bool sharded(const std::vector<Role>& roles) {
    return std::any_of(roles.begin(), roles.end(),
                       [](const Role& it) { return std::holds_alternative<Boxed<ShardWorker>>(it); });
}

RoleId roles_of(const Scenario& scenario) {
    const int shards = scenario.topology == "sharded" ? scenario.shards.count : 1;
    return scenario.lambda() + shards + static_cast<RoleId>(make_tree(scenario).relays().size());
}

std::string ending_text(const Finish& finish) {
    if (finish.status == Status::interrupted) return "stopped by a signal";
    if (finish.status == Status::peer_lost)
        return "worker " + std::to_string(finish.worker) +
               " is down, and a barrier does not go on without any of its workers";
    if (finish.status != Status::diverged) return "";
    if (finish.worker < 0) return "the loss of version " + std::to_string(finish.version) + " is not finite";
    return "the loss of gradient " + std::to_string(finish.worker_seq) + " of worker " + std::to_string(finish.worker) +
           ", computed on version " + std::to_string(finish.version) + ", is not finite";
}

namespace {

ServerConfig server_config(const Scenario& scenario, std::int64_t samples, std::int64_t parameters) {
    ServerConfig config;
    config.lambda = scenario.lambda();
    config.samples = samples;
    config.parameters = parameters;
    config.batch_size = scenario.workers.batch_size;
    config.n = rule_n(scenario.protocol, scenario.lambda());
    config.optimizer = scenario.optimizer;
    config.communication = scenario.workers.communication;
    config.overlaps = scenario.workers.overlaps();
    config.draw_themselves = scenario.workers.draw_themselves();
    config.rule = scenario.optimizer.staleness_rule;
    config.stop_updates = scenario.stop.updates;
    config.stop_gradients = scenario.stop.gradients;
    if (scenario.stop.epochs) config.stop_samples = std::llround(*scenario.stop.epochs * static_cast<double>(samples));
    config.warm_samples = std::llround(scenario.protocol.warm_epochs * static_cast<double>(samples));
    if (scenario.stop.seconds) config.stop_ns = std::llround(*scenario.stop.seconds * 1e9);
    config.target = scenario.stop.target;
    config.learns = scenario.model.gradients;
    config.stop_on_divergence = scenario.stop.on_divergence;
    if (config.learns) config.evaluate_every_epochs = scenario.evaluate.every_epochs;
    config.evaluate_at_end = scenario.evaluate.at_end;
    config.pause_to_evaluate = scenario.evaluate.mode == EvaluateSpec::Mode::pause;
    config.checkpoint = scenario.checkpoint;
    config.tree = make_tree(scenario);
    config.broadcast = scenario.tree.broadcast;
    return config;
}

/// A shard beside the first one neither evaluates nor looks at losses and clocks, and ends when that one says so, or
/// when it has counted as much as that one will: what one takes in comes to all.
ServerConfig shard_config(const ServerConfig& first, int shard) {
    ServerConfig config = first;
    config.shard = shard;
    config.first = first.shards.range(shard).first;
    config.parameters = first.shards.range(shard).count;
    config.hands_over = first.learns;
    if (shard == 0) return config;
    config.stop_ns = std::nullopt;
    config.target = std::nullopt;
    config.learns = config.evaluate_at_end = false;
    config.evaluate_every_epochs = std::nullopt;
    return config;
}

DealerConfig dealer_config(const Scenario& scenario, std::int64_t samples) {
    DealerConfig dealer;
    dealer.sampling = scenario.data.sampling;
    dealer.samples = samples;
    dealer.batch_size = scenario.workers.slice_size();
    dealer.lambda = scenario.lambda();
    return dealer;
}

/// A driver and its workers, who draw their own batches.
std::vector<Role> averaging_roles(const Scenario& scenario, std::int64_t samples, std::int64_t parameters,
                                  const RunState* state) {
    const ServerState* saved = state ? &state->server : nullptr;
    const auto its = [&](WorkerId worker) {
        if (state == nullptr) return WorkerState{};
        const auto at = static_cast<std::size_t>(worker);
        return WorkerState{saved->begun.at(at), saved->version, state->books.at(at)};
    };
    AverageConfig config{server_config(scenario, samples, parameters), dealer_config(scenario, samples),
                         scenario.protocol.averaging};
    config.data.own = true;
    const SpreadSpec& spread = config.averaging.spread;
    std::vector<Role> roles;
    if (scenario.protocol.averages_alone()) {
        const bool deltas = scenario.protocol.name != "easgd";
        const double alpha = config.averaging.alpha > 0 ? config.averaging.alpha : 0.9 / scenario.lambda();
        int& pushes = config.averaging.delayed.pushes;
        pushes = !deltas ? 0 : pushes > 0 ? pushes : scenario.lambda();
        roles.emplace_back(Boxed(ElasticServer(config, saved)));
        for (WorkerId worker = 0; worker < scenario.lambda(); ++worker)
            roles.emplace_back(Boxed(ElasticWorker({worker, parameters, config.data, alpha, deltas}, its(worker))));
        return roles;
    }
    if (scenario.protocol.gossips()) {
        roles.emplace_back(Boxed(GossipMonitor(config, saved)));
        for (WorkerId worker = 0; worker < scenario.lambda(); ++worker)
            roles.emplace_back(Boxed(GossipWorker(
                {worker, parameters, config.data, config.averaging.tau, scenario.seeds.data, scenario.optimizer},
                its(worker))));
        return roles;
    }
    if (scenario.protocol.streams()) {
        const StreamSpec& stream = config.averaging.stream;
        config.parts = phase_parts(scenario, parameters);
        roles.emplace_back(Boxed(AverageDriver(config, saved)));
        for (WorkerId worker = 0; worker < scenario.lambda(); ++worker)
            roles.emplace_back(
                Boxed(StreamWorker({worker, parameters, config.data, config.averaging.tau / stream.fragments,
                                    stream.overlap, stream.keep, config.parts},
                                   its(worker))));
        return roles;
    }
    if (scenario.protocol.averages_in_phases()) {
        const PhasesSpec& phases = config.averaging.phases;
        const auto parts = phase_parts(scenario, parameters);
        roles.emplace_back(Boxed(PhaseDriver({config.run, config.data, phases, parts, spread}, saved)));
        for (WorkerId worker = 0; worker < scenario.lambda(); ++worker)
            roles.emplace_back(
                Boxed(PhaseWorker({worker, parameters, config.data, phases, parts, spread}, its(worker))));
        return roles;
    }
    // Without a model to learn, chunks are of the bytes of a message.
    if (spread.swarm && parameters <= 0) parameters = config.run.parameters = scenario.cost.push_bytes;
    roles.emplace_back(Boxed(AverageDriver(config, saved)));
    for (WorkerId worker = 0; worker < scenario.lambda(); ++worker)
        roles.emplace_back(
            Boxed(AverageWorker({worker, parameters, config.data, config.averaging.gradients, spread}, its(worker))));
    return roles;
}

/// Replicas, and whoever keeps their books.
std::vector<Role> collective_roles(const Scenario& scenario, std::int64_t samples, std::int64_t parameters,
                                   const RunState* state) {
    MonitorConfig monitor{server_config(scenario, samples, parameters), dealer_config(scenario, samples),
                          last_iteration(dealer_config(scenario, samples), scenario.stop).value_or(-1)};
    monitor.run.pause_to_evaluate &= monitor.run.learns;
    CollectiveConfig config;
    config.parameters = parameters;
    config.data = monitor.data;
    config.spec = scenario.protocol.collective;
    config.optimizer = scenario.optimizer;
    config.buckets = make_buckets(scenario, parameters);
    config.bytes_of_one = bytes_of_element(scenario, parameters);
    config.last = monitor.last;
    config.evaluate_every_epochs = monitor.run.evaluate_every_epochs;
    config.traces_buckets = scenario.trace.layers;
    config.pauses = monitor.run.pause_to_evaluate;
    config.checkpoint = scenario.checkpoint;
    const bool alone = config.spec.mode == CollectiveMode::no_comm || scenario.lambda() == 1;
    monitor.workers = alone ? computing_in(config.data, 0) : scenario.lambda();
    monitor.buckets = config.traces_buckets ? static_cast<int>(config.buckets.size()) : 0;
    std::vector<Role> roles;
    roles.emplace_back(Boxed(CollectiveMonitor(monitor, state ? &state->server : nullptr)));
    for (WorkerId worker = 0; worker < scenario.lambda(); ++worker) {
        config.worker = worker;
        config.hands_over = worker == 0 && (monitor.run.learns || scenario.checkpoint.any());
        const auto at = static_cast<std::size_t>(worker);
        if (state == nullptr)
            roles.emplace_back(Boxed(CollectiveWorker(config)));
        else
            roles.emplace_back(
                Boxed(CollectiveWorker(config, {state->server.begun.at(at), state->server.version, state->books.at(at)},
                                       state->server.samples)));
    }
    return roles;
}

}  // namespace

std::vector<Role> make_roles(const Scenario& scenario, std::int64_t samples, std::int64_t parameters,
                             const RunState* state) {
    if (scenario.protocol.reduces()) return collective_roles(scenario, samples, parameters, state);
    if (scenario.protocol.averages()) return averaging_roles(scenario, samples, parameters, state);
    const Policy policy = make_policy(scenario.protocol, scenario.lambda());
    auto config = server_config(scenario, samples, parameters);
    const bool leaves = leaves_answer(scenario, traits(policy));
    config.unasked = leaves || config.tree.downcast();
    config.draw_themselves |= leaves;
    config.shards = make_shards(scenario, parameters);
    const ServerConfig server = config;
    if (config.shards.any()) config = shard_config(server, 0);
    DealerConfig dealer = dealer_config(scenario, samples);
    dealer.barrier = traits(policy).rounds;
    dealer.own = config.draw_themselves;
    dealer.limit = dealer.own ? -1 : config.stop_samples.value_or(-1);

    std::vector<Role> roles;
    roles.reserve(static_cast<std::size_t>(scenario.lambda()) + 1 + config.tree.relays().size());
    roles.emplace_back(Boxed(state ? Server(config, dealer, policy, state->server) : Server(config, dealer, policy)));
    const Word word = traits(policy).word;
    for (WorkerId worker = 0; worker < scenario.lambda(); ++worker) {
        const auto at = static_cast<std::size_t>(worker);
        const RoleId parent = config.tree.server_of(worker);
        const std::int64_t begun = state ? state->server.begun.at(at) : 0;
        const WorkerRow books = state ? state->books.at(at) : WorkerRow{};
        if (config.shards.any()) {
            roles.emplace_back(
                Boxed(ShardWorker({worker, config.shards, word, traits(policy).rounds, scenario.workers.overlaps(),
                                   scenario.workers.draw_themselves(), dealer})));
            continue;
        }
        if (scenario.workers.overlaps()) {
            const OverlapConfig its{worker,
                                    parent,
                                    parameters,
                                    scenario.workers.pull,
                                    dealer,
                                    begun,
                                    config.tree.feeder_of(worker),
                                    config.tree.fed_by(worker)};
            roles.emplace_back(Boxed(OverlapWorker(its, books)));
            continue;
        }
        roles.emplace_back(Worker(
            {worker, parent, parameters, begun, config.batch_size, word, config.communication.pull_every > 1}, books));
    }
    for (int shard = 1; shard < config.shards.count(); ++shard)
        roles.emplace_back(Boxed(Server(shard_config(server, shard), dealer, policy)));
    for (const auto& place : config.tree.relays()) {
        RelayConfig relay;
        relay.place = place;
        relay.lambda = scenario.lambda();
        relay.parameters = parameters;
        relay.batch_size = config.batch_size;
        relay.broadcast = config.broadcast;
        relay.answers = leaves && place.children.front() <= scenario.lambda();
        if (relay.answers) relay.data = dealer;
        relay.brief = !scenario.model.gradients && !scenario.trace.gradients;
        arrange(relay, traits(policy));
        roles.emplace_back(Boxed(Relay(relay)));
    }
    return roles;
}

}  // namespace rubato
