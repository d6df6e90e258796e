#include "cli/complete.hpp"

#include "cli/complete_averaging.hpp"
#include "cli/complete_collective.hpp"
#include "cli/complete_devices.hpp"
#include "cli/complete_protocol.hpp"
#include "cli/complete_shards.hpp"
#include "cli/complete_tree.hpp"
#include "cli/faults.hpp"
#include "cli/layer_costs.hpp"
#include "cli/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;

void fill(Node& object, const std::string& key, Node value) {
    if (!object.find(key)) object.set(key, std::move(value), {});
}

/// `text` is one of `names`.
bool among(std::string_view text, std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), text) != names.end();
}

bool analytic(const Node& model) {
    return among(model.at("name").text, {"constant", "tagged", "quadratic"});
}

void check_model(const Node& root) {
    const Node* model = root.find("model");
    const Node* cost = root.find("cost");
    if (!model && !cost) {
        refuse(root, "",
               "neither model nor cost is given: name what learns, such as \"model\": {\"name\": \"softmax\"}, or for "
               "a timing-only run what is charged, such as \"cost\": {\"model\": \"resnet50\"}");
    }
    if (!cost) return;
    if (cost->find("model")) return;
    const Node* push = cost->find("push_bytes");
    if (!push && !model) {
        refuse(*cost, "cost", "without a learning model it must tell the sizes of messages: model or push_bytes");
    }
    if (!push && cost->find("pull_bytes")) refuse(*cost, "cost", "\"push_bytes\" is missing beside pull_bytes");
}

void complete_pull(Node& root) {
    Node& workers = *root.find("workers");
    if (workers.at("pipeline").text != "overlap") return;
    const bool downcast = root.at("topology").at("name").text == "tree-downcast";
    fill(workers, "pull", Node::of(std::string(downcast ? "latest" : "prefetch")));
}

/// Whether nobody deals the workers their batches.
bool draw_themselves(const Node& root) {
    const Node* pull = root.at("workers").find("pull");
    return (pull && pull->text == "latest") || family_of(root) != Family::policy;
}

void complete_data(Node& root) {
    Node& data = *root.find("data");
    fill(data, "sampling", Node::of(std::string(draw_themselves(root) ? "strided" : "shared-epoch")));
    const std::string& dataset = data.at("dataset").text;
    const bool timing = timing_only(root);
    const Node* samples = data.find("samples");
    if (!data.find("path") && (dataset == "idx" || (dataset == "cifar-10" && !timing)))
        refuse(data, "data", "dataset \"" + dataset + "\" needs path, the folder of its files");
    // A cut CIFAR-10 is read where the scenario says that it is one.
    if (samples && !among(dataset, {"synthetic", "cifar-10"}) && !timing) {
        refuse(*samples, "data.samples",
               "goes with dataset \"synthetic\" or a timing-only run; \"" + dataset +
                   "\" has a number of samples of its own");
    }
    const Node* model = root.find("model");
    if (model && model->at("gradients").text == "real" && analytic(*model) && dataset != "synthetic") {
        refuse(data.at("dataset"), "data.dataset",
               "model \"" + model->at("name").text +
                   "\" looks at no data: leave dataset out, data.samples sets the epoch");
    }
    if (samples || (dataset != "synthetic" && !timing)) return;
    // A timing-only run of a known data set keeps the data set's own number, which the learning room knows.
    if (dataset != "synthetic") return;
    std::int64_t count = 10'000;
    const Node* cost = root.find("cost");
    const Node* name = cost ? cost->find("model") : nullptr;
    // CIFAR-10 and ImageNet (ILSVRC 2012), on which the models of the catalogue are trained.
    if (timing && name) count = name->text == "cifar10-full" ? 50'000 : 1'281'167;
    fill(data, "samples", Node::of(count));
}

/// What workers do by themselves between exchanges, and with what it goes together.
void check_communication(const Node& root, std::vector<std::string>& notes) {
    const Node* communication = root.at("workers").find("communication");
    if (!communication) return;
    const std::string path = "workers.communication";
    const Node& push = communication->at("push_every");
    const Node& pull = communication->at("pull_every");
    const Node* rate = communication->find("local_learning_rate");
    const std::int64_t batch = root.at("workers").at("batch_size").whole();
    if (push.whole() == 1 && pull.whole() == 1) {
        if (rate)
            notes.emplace_back(
                "workers.communication.local_learning_rate does not apply: workers take no steps of their own unless "
                "push_every or pull_every is above 1");
        return;
    }
    const Node& longest = push.whole() > 1 ? push : pull;
    const std::string key = path + (push.whole() > 1 ? ".push_every" : ".pull_every");
    if (push.whole() * batch > std::numeric_limits<std::int32_t>::max())
        refuse(push, key,
               fmt::format("{} batches of {} samples are more than 2147483647 samples at once", push.whole(), batch));
    if (root.find("schedule")) refuse(longest, key, "a schedule tells of single gradients: expected 1 beside it");
    if (root.at("protocol").find("warm_start"))
        refuse(longest, key, "protocol.warm_start is hardsync of single gradients: expected 1 beside it");
    const Node& rule = root.at("optimizer").at("staleness_rule");
    const std::string& name = rule.is(Kind::string) ? rule.text : rule.find("name") ? rule.at("name").text : "";
    if (among(name, {"delay-compensation", "gap-aware"}))
        refuse(longest, key,
               "staleness_rule \"" + name +
                   "\" looks at the weights that a gradient was computed on, and the server does "
                   "not have those to which a worker's own steps led: expected 1, or another rule");
}

void complete_workers(Node& root, std::vector<std::string>& notes) {
    Node& workers = *root.find("workers");
    const Node* count = workers.find("count");
    const Node* groups = workers.find("groups");
    if (count && groups) refuse(*count, "workers.count", "cannot stand beside groups, which have counts of their own");
    if (!count && !groups)
        refuse(workers, "workers", "\"count\" is missing: expected an integer of at least 1, or groups");
    for (const char* key : {"device", "per_host", "devices", "sum_s"}) {
        const Node* value = workers.find(key);
        if (groups && value)
            refuse(*value, "workers." + std::string(key), "cannot stand beside groups: say it in each group");
    }
    check_communication(root, notes);
    const std::int64_t lambda = worker_count(root);
    if (lambda > 1'000'000) refuse(*groups, "workers.groups", "more than 1000000 workers in all");
    if (const Node* hosts = workers.find("hosts")) {
        const auto per_host = [&](const Node& node, const std::string& path) {
            if (const Node* value = node.find("per_host")) {
                refuse(*value, path + ".per_host",
                       "cannot stand beside workers.hosts, which spreads the workers evenly");
            }
        };
        per_host(workers, "workers");
        for (std::size_t i = 0; groups && i < groups->items.size(); ++i) {
            per_host(groups->items[i], "workers.groups[" + std::to_string(i) + "]");
        }
        const Node* number = hosts->is(Kind::object) ? hosts->find(std::to_string(lambda)) : hosts;
        if (!number) {
            std::vector<std::string> keys;
            for (const auto& member : hosts->members) {
                if (member.key != "comment") keys.push_back(member.key);
            }
            refuse(*hosts, "workers.hosts",
                   "the table has no entry for " + std::to_string(lambda) + " workers, only for " +
                       (keys.empty() ? "none" : one_of(keys, "and")));
        }
        if (number->whole() > lambda) {
            notes.push_back("workers.hosts: " + std::to_string(number->whole()) + " hosts for " +
                            std::to_string(lambda) + " workers; those without a worker are left out");
        }
    }
}

void complete_stop(Node& root) {
    Node& stop = *root.find("stop");
    const bool limit = stop.find("epochs") || stop.find("updates") || stop.find("gradients") || stop.find("seconds");
    const Node* target = stop.find("target");
    const bool schedule = root.find("schedule") != nullptr;  // its end is one, and is filled in when it is read
    if (!limit && !schedule && target) {
        refuse(*target, "stop.target", "may never be reached: add a limit (epochs, updates, gradients or seconds)");
    }
    if (!limit && !schedule) fill(stop, "epochs", Node::of(std::int64_t{1}));
    if (!target) return;
    const Node& metric = target->at("metric");
    if (timing_only(root)) refuse(*target, "stop.target", "a timing-only run has no " + metric.text);
    const bool is_analytic = analytic(root.at("model"));
    if (is_analytic != among(metric.text, {"gradient_norm", "suboptimality"}) && metric.text != "train_loss") {
        refuse(metric, "stop.target.metric",
               "model \"" + root.at("model").at("name").text + "\" has no " + metric.text +
                   (is_analytic ? "; it has gradient_norm, suboptimality and train_loss" : ""));
    }
    if (metric.text.starts_with("valid_") && root.at("data").at("validation").number <= 0) {
        refuse(metric, "stop.target.metric",
               metric.text + " needs validation samples: set data.validation, such as 0.1");
    }
}

void complete_evaluate(Node& root) {
    Node& evaluate = *root.find("evaluate");
    const Node* every = evaluate.find("every_epochs");
    const Node* at_end = evaluate.find("at_end");
    if (timing_only(root)) {
        const std::string why = "a timing-only run has no weights to evaluate";
        if (every) refuse(*every, "evaluate.every_epochs", why);
        if (at_end && at_end->boolean) refuse(*at_end, "evaluate.at_end", why);
        return;
    }
    const bool target = root.at("stop").find("target") != nullptr;
    if (target) fill(evaluate, "every_epochs", Node::of(std::int64_t{1}));
    const Node* mode = evaluate.find("mode");
    if (target && mode && mode->text == "deferred") {
        refuse(*mode, "evaluate.mode",
               "deferred evaluations come too late for stop.target: expected \"rank\" or \"pause\"");
    }
}

void complete_optimizer(Node& root) {
    Node& optimizer = *root.find("optimizer");
    Node& schedule = *optimizer.find("schedule");
    if (schedule.is(Kind::object)) {
        const Node* limit = root.at("stop").find("epochs");
        if (!schedule.find("epochs") && !limit)
            refuse(schedule, "optimizer.schedule",
                   "\"epochs\" is missing: where stop.epochs is not given, say the end");
        if (limit) fill(schedule, "epochs", *limit);
        const Node* warm_up = optimizer.find("warm_up");
        const double end = schedule.at("epochs").number;
        if (warm_up && warm_up->at("epochs").number >= end)
            refuse(warm_up->at("epochs"), "optimizer.warm_up.epochs",
                   fmt::format("expected less than the {:g} epochs of the cosine, which begins after it", end));
    }
    for (std::size_t i = 1; i < schedule.items.size(); ++i) {
        const Node& epoch = schedule.items[i].at("epoch");
        if (epoch.number >= schedule.items[i - 1].at("epoch").number) continue;
        refuse(epoch, "optimizer.schedule[" + std::to_string(i) + "].epoch", "expected epochs in ascending order");
    }
}

void check_rest(const Node& root) {
    const Node& threads = root.at("execution").at("threads_per_worker");
    if (threads.whole() != 1)
        refuse(threads, "execution.threads_per_worker", "more than one thread a gradient is not yet built");
    const Node& cluster = root.at("cluster");
    for (const char* key : {"hosts", "server_host"}) {
        const Node* value = cluster.find(key);
        if (!value || cluster.find("platform")) continue;
        refuse(*value, std::string("cluster.") + key,
               "names hosts of a platform file, but cluster.platform is not given");
    }
}

/// Who says which workers share a host wants a server beside them, as Rudra-adv has it.
void complete_leaves(Node& root) {
    Node& topology = *root.find("topology");
    if (!among(topology.at("name").text, {"tree", "tree-downcast"})) return;
    fill(topology, "leaves", Node::of(std::string(root.at("workers").find("hosts") ? "hosts" : "even")));
}

}  // namespace

bool timing_only(const Node& root) {
    const Node* model = root.find("model");
    return !model || model->at("gradients").text == "none";
}

std::int64_t worker_count(const Node& root) {
    const Node& workers = root.at("workers");
    if (const Node* count = workers.find("count")) return count->whole();
    std::int64_t total = 0;
    if (const Node* groups = workers.find("groups")) {
        for (const auto& group : groups->items) total += group.at("count").whole();
    }
    return total;
}

void prepare_sections(Node& root, const std::string& default_name) {
    fill(root, "name", Node::of(default_name));
    const Node* topology = root.find("topology");
    const Node* name = topology && topology->is(Kind::object) ? topology->find("name") : nullptr;
    Node* workers = root.find("workers");
    // What it is made for, and nothing else is possible.
    if (name && name->is(Kind::string) && name->text == "tree-downcast" && workers && workers->is(Kind::object))
        fill(*workers, "pipeline", Node::of(std::string("overlap")));
    fill(root, "cluster", Node::object());
    Node& cluster = *root.find("cluster");
    if (!cluster.is(Kind::object) || cluster.find("platform")) return;
    fill(cluster, "network", Node::object());
    Node& network = *cluster.find("network");
    if (network.is(Kind::object)) fill(network, "star", Node::object());
}

void complete(Node& root, std::vector<std::string>& notes) {
    complete_layers(root, notes);
    check_model(root);
    complete_pull(root);
    complete_data(root);
    complete_workers(root, notes);
    complete_devices(root, notes);
    check_faults(root.at("faults"), worker_count(root));
    complete_averaging(root);
    complete_collective(root);
    complete_protocol(root);
    complete_leaves(root);
    complete_tree(root);
    complete_shards(root);
    complete_stop(root);
    complete_evaluate(root);
    complete_optimizer(root);
    check_rest(root);
}

}  // namespace rubato::cli
