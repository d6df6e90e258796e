#include "cli/complete_averaging.hpp"

#include "cli/complete.hpp"
#include "cli/without_pushes.hpp"
#include "core/averaging/phase_driver.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace rubato::cli {
namespace {

void fill(Node& protocol, const std::string& key, Node value) {
    if (!protocol.find(key)) protocol.set(key, std::move(value), {});
}

void fill_elastic(Node& protocol, std::int64_t lambda) {
    fill(protocol, "alpha", Node::of(0.9 / static_cast<double>(lambda)));
    if (const Node& alpha = protocol.at("alpha"); !alpha.is_number() || alpha.number <= 0)
        refuse(alpha, "protocol.alpha",
               "\"easgd\" moves by the same part with each exchange: expected a number above 0");
}

void fill_phases(Node& protocol) {
    const std::int64_t phases = protocol.at("phases").whole();
    fill(protocol, "shards", Node::of(phases));
    const Node& shards = protocol.at("shards");
    if (phases == 1 && shards.whole() != 1)
        refuse(shards, "protocol.shards", "one phase exchanges the whole model: expected 1");
    if (shards.whole() < phases)
        refuse(shards, "protocol.shards",
               "each phase has a shard of its own: expected at least protocol.phases = " + std::to_string(phases));
    if (const Node* sizes = protocol.find("sizes");
        sizes != nullptr && static_cast<std::int64_t>(sizes->items.size()) != shards.whole())
        refuse(*sizes, "protocol.sizes",
               "expected one of each shard, as many as protocol.shards = " + std::to_string(shards.whole()));
    fill(protocol, "alpha", Node::of(0.05));
    Node beta = Node::object();
    beta.set("from", Node::of(1.0), {});
    beta.set("to", Node::of(0.9), {});
    beta.set("over", Node::of(std::int64_t{20}), {});
    beta.set("before", Node::of(0.0), {});
    beta.set("after", Node::of(std::int64_t{0}), {});
    fill(protocol, "beta", std::move(beta));
    fill(protocol, "gamma", Node::of(0.7));
    fill(protocol, "delta", Node::of(0.8));
}

void fill_spread(Node& protocol, std::int64_t lambda) {
    fill(protocol, "broadcast", Node::of("binomial"));
    if (protocol.at("broadcast").text == "swarm") fill(protocol, "chunks", Node::of(std::max<std::int64_t>(2, lambda)));
}

void fill_stream(Node& protocol) {
    const std::int64_t fragments = protocol.at("fragments").whole(), tau = protocol.at("tau").whole();
    if (tau % fragments != 0)
        refuse(protocol.at("tau"), "protocol.tau",
               "one of " + std::to_string(fragments) +
                   " fragments is exchanged after the other, as many steps apart: expected a multiple of "
                   "protocol.fragments");
    const std::int64_t every = tau / fragments;
    fill(protocol, "overlap", Node::of(std::min<std::int64_t>(5, every - 1)));
    if (const Node& overlap = protocol.at("overlap"); overlap.whole() >= every)
        refuse(overlap, "protocol.overlap",
               "a fragment is merged before the next one is handed on: expected less than tau / fragments = " +
                   std::to_string(every));
}

void fill_keys(Node& protocol, std::int64_t lambda) {
    const std::string& name = protocol.at("name").text;
    const bool diloco = name == "diloco" || name == "async-diloco" || name == "streaming-diloco";
    if (name == "sparknet" || name == "local-sgd" || name == "diloco" || name == "mpca") fill_spread(protocol, lambda);
    if (name == "mpca") return fill_phases(protocol);
    const Node* exchange = protocol.find("exchange");
    if (exchange != nullptr && exchange->text == "gradients") {
        fill(protocol, "tau", Node::of(std::int64_t{1}));
        if (const Node& tau = protocol.at("tau"); tau.whole() != 1)
            refuse(tau, "protocol.tau",
                   "where gradients are exchanged there is one a round, and no step of a worker's own: expected 1");
        return;
    }
    fill(protocol, "tau", Node::of(std::int64_t{diloco ? 100 : 10}));
    if (name == "sparknet" || name == "gosgd") return;
    if (name == "easgd") return fill_elastic(protocol, lambda);
    if (name == "streaming-diloco") fill_stream(protocol);
    if (name == "async-diloco") fill(protocol, "delayed_nesterov", Node::of(lambda));
    fill(protocol, "outer_learning_rate", Node::of(diloco ? 0.7 : 1.0));
    fill(protocol, "outer_momentum", Node::of(diloco ? 0.9 : 0.0));
}

}  // namespace

void check_phases(const Node& root, const Scenario& scenario, std::int64_t parameters) {
    if (!scenario.protocol.averages_in_parts()) return;
    const PhasesSpec& phases = scenario.protocol.averaging.phases;
    const Node& protocol = root.at("protocol");
    const auto parts = phase_parts(scenario, parameters);
    const bool empty = std::any_of(parts.begin(), parts.end(), [](const Range& part) { return part.count == 0; });
    if (static_cast<int>(parts.size()) == phases.shards && !empty) return;
    const bool layers = phases.by_layers && phases.sizes.empty() && !scenario.layers.empty();
    const std::string what = scenario.protocol.streams() ? "fragments" : "shards";
    if (!phases.sizes.empty())
        refuse(protocol.at("sizes"), "protocol.sizes",
               "one of the shards would be empty: expected sizes that are nearer to each other");
    const std::size_t count = scenario.layers.size();
    refuse(layers ? protocol.at("split") : protocol.at(what), layers ? "protocol.split" : "protocol." + what,
           layers ? "the model has " + std::to_string(count) + (count == 1 ? " layer" : " layers") +
                        ", and there are to be " + std::to_string(phases.shards) + " " + what +
                        ": expected fewer of them, or \"bytes\""
                  : "one of the " + what + " would be empty: expected fewer of them");
}

Family family_of(const Node& root) {
    return rubato::family_of(root.at("protocol").at("name").text);
}

void complete_averaging(Node& root) {
    if (!rubato::averages(family_of(root))) return;
    fill_keys(*root.find("protocol"), worker_count(root));
    refuse_without_pushes(
        root,
        {.sampling = "leaves workers to themselves between exchanges, so nobody deals them slices of an epoch that "
                     "they share",
         .interval = "says with protocol.tau how often workers exchange something: expected 1",
         .rule = "has workers take steps of their own, and applies no gradient of theirs: expected \"none\"",
         .momentum = "has no stale gradients that would act as momentum: expected \"configured\"",
         .faults = "",
         .pause = "not yet built for protocols that average: expected \"deferred\" or \"rank\"",
         .network = "not yet built for protocols that average, whose workers talk with each other"});
    if (const Node* updates = root.at("stop").find("updates");
        updates != nullptr && root.at("protocol").at("name").text == "gosgd")
        refuse(*updates, "stop.updates",
               "\"gosgd\" has a joint model only where it is evaluated, and at the end: expected stop.epochs, "
               "stop.gradients or stop.seconds");
}

}  // namespace rubato::cli
