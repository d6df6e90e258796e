#include "cli/build_scenario.hpp"

#include "cli/build_protocol.hpp"
#include "cli/complete.hpp"
#include "cli/complete_shards.hpp"
#include "cli/complete_tree.hpp"
#include "cli/expression.hpp"
#include "cli/faults.hpp"
#include "cli/layer_costs.hpp"
#include "cli/node_value.hpp"
#include "cli/pipeline.hpp"
#include "cli/plugins.hpp"
#include "core/policy.hpp"
#include "learn/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

std::uint64_t to_seed(const Node& node) {
    return static_cast<std::uint64_t>(node.whole());
}

DataSpec build_data(const Node& data) {
    DataSpec spec;
    spec.dataset = data.at("dataset").text;
    if (const Node* path = data.find("path")) spec.path = path->text;
    if (const Node* samples = data.find("samples")) spec.samples = samples->whole();
    if (const Node* samples = data.find("test_samples")) spec.test_samples = samples->whole();
    if (const Node* shape = data.find("shape")) {
        for (const auto& size : shape->items) spec.shape.push_back(to_int(size));
    }
    if (const Node* classes = data.find("classes")) spec.classes = to_int(*classes);
    spec.validation = data.at("validation").number;
    constexpr std::pair<std::string_view, Sampling> modes[] = {{"shared-epoch", Sampling::shared_epoch},
                                                               {"strided", Sampling::strided},
                                                               {"random", Sampling::random},
                                                               {"sharded", Sampling::sharded}};
    for (const auto& [name, mode] : modes) {
        if (data.at("sampling").text == name) spec.sampling = mode;
    }
    spec.subtract_mean = data.at("subtract_mean").boolean;
    return spec;
}

ModelSpec build_model(const Node* model) {
    ModelSpec spec;
    spec.gradients = model && model->at("gradients").text == "real";
    if (!model) return spec;
    spec.name = model->at("name").text;
    if (const Node* hidden = model->find("hidden")) {
        for (const auto& size : hidden->items) spec.hidden.push_back(to_int(size));
    }
    if (const Node* value = model->find("dimension")) spec.dimension = value->whole();
    if (const Node* value = model->find("conditioning")) spec.conditioning = value->number;
    if (const Node* value = model->find("noise")) spec.noise = value->number;
    if (const Node* value = model->find("value")) spec.value = value->number;
    return spec;
}

/// And what it says of layers.
CostSpec build_cost(const Node* cost, Scenario& scenario) {
    CostSpec spec;
    if (!cost) return spec;
    if (const Node* name = cost->find("model")) {
        const learn::CatalogueEntry* entry = learn::find(name->text);
        if (!entry) throw std::logic_error("the schema names a cost model that the catalogue lacks: " + name->text);
        for (const auto& layer : entry->layers) scenario.layers.push_back(layer.parameters);
        return {entry->name, entry->bytes, entry->bytes, entry->flops_per_sample, entry->parameters};
    }
    const auto bytes = [](const Node& node) { return std::llround(std::min(quantity(node, Quantity::size), 9e18)); };
    if (const Node* push = cost->find("push_bytes")) spec.push_bytes = bytes(*push);
    build_layers(*cost, spec.push_bytes, scenario);
    const Node* pull = cost->find("pull_bytes");
    spec.pull_bytes = pull ? bytes(*pull) : spec.push_bytes;
    if (const Node* flops = cost->find("flops_per_sample")) spec.flops_per_sample = quantity(*flops, Quantity::speed);
    return spec;
}

/// A list, an expression, or figures of chosen workers beside 1; empty where there is none.
std::vector<double> figures_of_workers(const Node& workers, const std::string& key, int lambda) {
    const Node* node = workers.find(key);
    if (!node) return {};
    const std::string path = "workers." + key;
    std::vector<double> figures;
    if (node->is(Kind::string)) {
        try {
            return worker_figures(node->text, lambda);
        } catch (const std::invalid_argument& error) {
            throw InputError(node->where, path, error.what());
        }
    }
    for (const Node& item : node->items) figures.push_back(item.number);
    if (node->is(Kind::array) && figures.size() != static_cast<std::size_t>(lambda))
        throw InputError(node->where, path,
                         "expected a figure for each of the " + std::to_string(lambda) + " workers, found " +
                             std::to_string(figures.size()));
    if (node->is(Kind::object)) figures.assign(static_cast<std::size_t>(lambda), 1);
    for (const auto& [worker, where, figure] : node->members) {
        if (worker == "comment") continue;
        if (std::stoi(worker) >= lambda)
            throw InputError(where, path + "." + worker,
                             "there is no such worker: they are 0 to " + std::to_string(lambda - 1));
        figures[static_cast<std::size_t>(std::stoi(worker))] = figure.number;
    }
    return figures;
}

WorkersSpec build_workers(const Node& root) {
    const Node& workers = root.at("workers");
    WorkersSpec spec;
    const auto add = [&](const Node& node) {
        WorkerGroup group;
        group.count = to_int(node.at("count"));
        if (const Node* device = node.find("device")) group.device = device->text;
        if (const Node* per_host = node.find("per_host")) group.per_host = to_int(*per_host);
        if (const Node* devices = node.find("devices")) group.devices = to_int(*devices);
        if (const Node* sum = node.find("sum_s")) group.sum_s = quantity(*sum, Quantity::duration);
        spec.groups.push_back(group);
    };
    if (const Node* groups = workers.find("groups")) {
        for (const auto& group : groups->items) add(group);
    } else {
        add(workers);
    }
    spec.slow = figures_of_workers(workers, "slow", spec.count());
    spec.seconds = figures_of_workers(workers, "seconds", spec.count());
    spec.batch_size = to_int(workers.at("batch_size"));
    if (const Node* communication = workers.find("communication")) {
        auto& its = spec.communication;
        its.push_every = to_int(communication->at("push_every"));
        its.pull_every = to_int(communication->at("pull_every"));
        if (const Node* rate = communication->find("local_learning_rate")) its.local_learning_rate = rate->number;
    }
    if (workers.at("pipeline").text == "overlap") spec.pipeline = Pipeline::overlap;
    if (const Node* pull = workers.find("pull"); pull && pull->text == "latest") spec.pull = Pull::latest;
    if (const Node* hosts = workers.find("hosts")) {
        const int lambda = spec.count();
        spec.hosts = std::min(lambda, to_int(hosts->is(Kind::object) ? hosts->at(std::to_string(lambda)) : *hosts));
    }
    return spec;
}

StalenessRule build_rule(const Node& node) {
    StalenessRule rule;
    if (const Node* text = node.find("expression")) {
        Constants constants;
        for (const auto& [key, where, value] : node.members) {
            if (value.is_number()) constants.emplace_back(key, value.number);
        }
        rule.kind = StalenessRule::Kind::expression;
        try {
            rule.expression = make_expression(text->text, constants);
        } catch (const std::invalid_argument& error) {
            throw InputError(text->where, "optimizer.staleness_rule", error.what());
        }
        return rule;
    }
    if (const Node* file = node.find("file")) {
        rule.expression = rule_of(*file, node);
        if (rule.expression) rule.kind = StalenessRule::Kind::expression;
        return rule;
    }
    const std::string& wanted = node.is(Kind::string) ? node.text : node.at("name").text;
    for (int kind = 0; kind < static_cast<int>(StalenessRule::Kind::expression); ++kind) {
        if (name(static_cast<StalenessRule::Kind>(kind)) == wanted) rule.kind = static_cast<StalenessRule::Kind>(kind);
    }
    if (const Node* exponent = node.find("exponent")) rule.exponent = exponent->number;
    if (const Node* batch = node.find("reference_batch")) rule.reference_batch = batch->number;
    const Node* mean_square = node.find("mean_square");
    rule.adaptive = mean_square && mean_square->text != "none";
    rule.mean_square_by_worker = !mean_square || mean_square->text != "server";
    const Node* strength = node.find("strength");
    rule.strength = strength ? strength->number : rule.adaptive ? 2 : 0.04;
    const Node* decay = node.find("decay");
    rule.decay = decay ? decay->number : rule.kind == StalenessRule::Kind::gap_aware ? 0.999 : 0.95;
    return rule;
}

OptimizerSpec build_optimizer(const Node& optimizer) {
    OptimizerSpec spec;
    spec.name = optimizer.at("name").text;
    if (const Node* momentum = optimizer.find("momentum")) spec.momentum = momentum->number;
    if (const Node* rule = optimizer.find("momentum_rule")) spec.decoupled_momentum = rule->text == "decoupled";
    if (const Node* beta1 = optimizer.find("beta1")) spec.beta1 = beta1->number;
    if (const Node* beta2 = optimizer.find("beta2")) spec.beta2 = beta2->number;
    if (const Node* epsilon = optimizer.find("epsilon")) spec.epsilon = epsilon->number;
    spec.learning_rate = optimizer.at("learning_rate").number;
    spec.weight_decay = optimizer.at("weight_decay").number;
    spec.staleness_rule = build_rule(optimizer.at("staleness_rule"));
    spec.decoupled_weight_decay = optimizer.at("decoupled_weight_decay").boolean;
    const Node& schedule = optimizer.at("schedule");
    for (const auto& drop : schedule.items) {
        spec.schedule.push_back({drop.at("epoch").number, drop.at("factor").number});
    }
    if (schedule.is(Kind::object))
        spec.cosine = OptimizerSpec::Cosine{schedule.at("epochs").number, schedule.at("final_factor").number};
    if (const Node* warm_up = optimizer.find("warm_up"))
        spec.warm_up = {warm_up->at("epochs").number, warm_up->at("from").number};
    return spec;
}

StopSpec build_stop(const Node& stop) {
    StopSpec spec;
    if (const Node* epochs = stop.find("epochs")) spec.epochs = epochs->number;
    if (const Node* updates = stop.find("updates")) spec.updates = updates->whole();
    if (const Node* gradients = stop.find("gradients")) spec.gradients = gradients->whole();
    if (const Node* seconds = stop.find("seconds")) spec.seconds = quantity(*seconds, Quantity::duration);
    if (const Node* target = stop.find("target"))
        spec.target = {target->at("metric").text, target->at("at_most").number};
    spec.on_divergence = stop.at("diverged").text == "stop";
    return spec;
}

TraceSpec build_trace(const Node& trace) {
    TraceSpec spec;
    const Node& gradients = trace.at("gradients");
    spec.gradients = gradients.is(Kind::object) || gradients.boolean;
    if (gradients.is(Kind::object)) spec.every = to_int(gradients.at("every"));
    spec.updates = trace.at("updates").boolean;
    spec.timeline = trace.at("timeline").boolean;
    spec.events = trace.at("events").boolean;
    spec.layers = trace.at("layers").boolean;
    return spec;
}

/// The first gradient of every run has staleness 0: a rule that fails there is told before any work is done.
void try_rule(const Scenario& scenario, const Node& node) {
    RuleInfo info;
    info.age = 1;
    info.samples = info.batch_size = scenario.workers.batch_size;
    info.lambda = scenario.lambda();
    info.n = rule_n(scenario.protocol, scenario.lambda());
    try {
        scenario.optimizer.staleness_rule.gradient_factor(info);
    } catch (const ExpressionError& error) {
        throw InputError(node.where, "optimizer.staleness_rule", error.what());
    }
}

TreeSpec build_tree(const Node& topology) {
    TreeSpec spec;
    spec.fan_out = to_int(topology.at("fan_out"));
    spec.leaves_by_host = topology.at("leaves").text == "hosts";
    if (const Node* weights = topology.find("weights")) spec.broadcast = weights->text == "broadcast";
    if (const Node* fan_out = topology.find("weights_fan_out")) spec.weights_fan_out = to_int(*fan_out);
    return spec;
}

}  // namespace

Scenario build_scenario(const Node& root) {
    Scenario scenario;
    scenario.name = root.at("name").text;
    scenario.seed = to_seed(root.at("seed"));
    // Not filled in the tree: --set seed on a saved scenario shall set all that were not set apart.
    const auto seed = [&](const char* purpose) {
        const Node* apart = root.at("seeds").find(purpose);
        return apart ? to_seed(*apart) : scenario.seed;
    };
    scenario.seeds = {seed("init"), seed("data"), seed("timing")};
    scenario.data = build_data(root.at("data"));
    scenario.model = build_model(root.find("model"));
    scenario.cost = build_cost(root.find("cost"), scenario);
    scenario.workers = build_workers(root);
    scenario.protocol = build_protocol(root.at("protocol"), scenario.lambda());
    scenario.topology = root.at("topology").at("name").text;
    if (scenario.has_relays()) scenario.tree = build_tree(root.at("topology"));
    scenario.shards = build_shards(root.at("topology"));
    scenario.optimizer = build_optimizer(root.at("optimizer"));
    try_rule(scenario, root.at("optimizer").at("staleness_rule"));
    scenario.stop = build_stop(root.at("stop"));
    const Node& evaluate = root.at("evaluate");
    if (const Node* every = evaluate.find("every_epochs")) scenario.evaluate.every_epochs = every->number;
    using Mode = EvaluateSpec::Mode;
    scenario.evaluate.mode = scenario.stop.target ? Mode::rank : Mode::deferred;
    if (const Node* mode = evaluate.find("mode"))
        scenario.evaluate.mode = mode->text == "rank"    ? Mode::rank
                                 : mode->text == "pause" ? Mode::pause
                                                         : Mode::deferred;
    const Node* at_end = evaluate.find("at_end");
    scenario.evaluate.at_end = at_end ? at_end->boolean : scenario.model.gradients;
    scenario.cluster = build_cluster(root.at("cluster"));
    if (const Node* schedule = root.find("schedule")) scenario.schedule.trace = schedule->at("trace").text;
    scenario.faults = build_faults(root.at("faults"));
    scenario.trace = build_trace(root.at("trace"));
    build_execution(root.at("execution"), scenario);
    check_pipeline(root, scenario);
    check_tree(root, scenario);
    check_shards(root, scenario);
    return scenario;
}

}  // namespace rubato::cli
