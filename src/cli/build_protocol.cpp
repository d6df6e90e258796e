#include "cli/build_protocol.hpp"

#include "cli/node_value.hpp"
#include "cli/plugins.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace rubato::cli {
namespace {

DsspSpec build_dssp(const Node& protocol) {
    DsspSpec spec;
    const auto is = [&](const char* key, std::string_view value) { return protocol.at(key).text == value; };
    spec.lower_bound = protocol.at("lower_bound").whole();
    spec.r_max = protocol.at("r_max").whole();
    using Mode = DsspSpec::Mode;
    spec.mode = is("mode", "literal_next")   ? Mode::literal_next
                : is("mode", "literal_full") ? Mode::literal_full
                                             : Mode::strict;
    using Slowest = DsspSpec::Slowest;
    spec.slowest = is("slowest", "oldest")     ? Slowest::oldest
                   : is("slowest", "interval") ? Slowest::interval
                                               : Slowest::count;
    spec.table_on_every_push = is("table", "every-push");
    spec.ties_are_fastest = is("fastest", "tied");
    spec.smallest_of_ties = is("ties", "smallest");
    spec.intervals_with_waits = is("intervals", "with-waits");
    spec.exact_grants = is("grants", "exact");
    spec.intervals_from_start = is("first_intervals", "from-start");
    spec.keep_grants = is("leftover_grants", "keep");
    spec.look_at_every_push = is("reexamine", "every-push");
    return spec;
}

Ramp build_ramp(const Node& value) {
    if (value.is_number()) return Ramp::constant(value.number);
    const Node *before = value.find("before"), *after = value.find("after");
    return {value.at("from").number, value.at("to").number, value.at("over").whole(), before ? before->number : 0,
            after ? after->whole() : 0};
}

/// Without the key there are sizes instead.
bool splits_by_layers(const Node& protocol) {
    const Node* split = protocol.find("split");
    return split != nullptr && split->text == "layers";
}

PhasesSpec build_phases(const Node& protocol) {
    PhasesSpec spec;
    spec.phases = to_int(protocol.at("phases"));
    spec.shards = to_int(protocol.at("shards"));
    spec.by_layers = splits_by_layers(protocol);
    if (const Node* sizes = protocol.find("sizes"))
        for (const Node& size : sizes->items) spec.sizes.push_back(size.number);
    spec.by_steps = protocol.at("mean").text == "steps";
    spec.pull_gradients = protocol.at("pull").text == "gradient";
    spec.alpha = build_ramp(protocol.at("alpha"));
    spec.beta = build_ramp(protocol.at("beta"));
    spec.gamma = build_ramp(protocol.at("gamma"));
    spec.delta = build_ramp(protocol.at("delta"));
    return spec;
}

std::int64_t size_in_bytes(const Node& node) {
    return std::llround(std::min(quantity(node, Quantity::size), 9e18));
}

AllreduceAlgorithm algorithm_of(const std::string& name) {
    if (name == "ordered") return AllreduceAlgorithm::ordered;
    if (name == "native") return AllreduceAlgorithm::native;
    if (name == "recursive-doubling") return AllreduceAlgorithm::recursive_doubling;
    if (name == "rabenseifner") return AllreduceAlgorithm::rabenseifner;
    return name == "tree" ? AllreduceAlgorithm::tree : AllreduceAlgorithm::ring;
}

CollectiveSpec build_collective(const Node& protocol, const std::string& name) {
    CollectiveSpec spec;
    spec.mode = name == "no-comm"      ? CollectiveMode::no_comm
                : name == "layer-wise" ? CollectiveMode::layer_wise
                : name == "allreduce"  ? CollectiveMode::sync
                                       : CollectiveMode::delayed;
    spec.adaptive = name == "adaptive-delay";
    if (const Node* algorithm = protocol.find("algorithm")) spec.algorithm = spec.small = algorithm_of(algorithm->text);
    if (const Node* small = protocol.find("small_algorithm")) {
        spec.small = algorithm_of(small->text);
        spec.algorithm = algorithm_of(protocol.at("large_algorithm").text);
        spec.small_bytes = size_in_bytes(protocol.at("small_bytes"));
    }
    if (const Node* apply = protocol.find("apply"))
        spec.order = apply->text == "wait-all"         ? ApplyOrder::wait_all
                     : apply->text == "backprop-order" ? ApplyOrder::backprop
                                                       : ApplyOrder::completion;
    if (const Node* bucket = protocol.find("bucket_bytes")) spec.bucket_bytes = size_in_bytes(*bucket);
    if (const Node* delay = protocol.find("delay")) spec.delay = to_int(*delay);
    if (const Node* most = protocol.find("max_delay")) spec.max_delay = to_int(*most);
    if (const Node* every = protocol.find("adapt_every")) spec.adapt_every = to_int(*every);
    return spec;
}

}  // namespace

ProtocolSpec build_protocol(const Node& protocol, int lambda) {
    ProtocolSpec spec;
    spec.name = protocol.at("name").text;
    if (const Node* n = protocol.find("n")) spec.n = to_int(*n);
    if (const Node* count = protocol.find("gradients_per_update")) spec.gradients_per_update = to_int(*count);
    if (const Node* update = protocol.find("update")) spec.per_gradient = update->text == "per-gradient";
    if (const Node* bound = protocol.find("bound"); bound && !bound->is(Node::Kind::null)) spec.bound = bound->whole();
    if (protocol.find("r_max")) spec.dssp = build_dssp(protocol);
    if (const Node* k = protocol.find("k")) spec.k = k->whole();
    if (const Node* dependency = protocol.find("dependency")) spec.single_dependency = dependency->text == "single";
    if (const Node* backups = protocol.find("backups")) spec.backups = to_int(*backups);
    if (const Node* threshold = protocol.find("delay_threshold")) spec.delay_threshold = threshold->whole();
    if (const Node* cancel = protocol.find("cancel")) spec.cancel = cancel->boolean;
    if (const Node* admit = protocol.find("admit"))
        spec.admit = admit->text == "pace" ? Admit::pace : admit->text == "discard" ? Admit::discard : Admit::withhold;
    if (const Node* warm = protocol.find("warm_start")) spec.warm_epochs = warm->at("epochs").number;
    if (const Node* tau = protocol.find("tau")) spec.averaging.tau = to_int(*tau);
    if (const Node* what = protocol.find("exchange")) spec.averaging.gradients = what->text == "gradients";
    if (const Node* alpha = protocol.find("alpha"); alpha != nullptr && spec.name == "easgd")
        spec.averaging.alpha = alpha->number;
    if (const Node* how = protocol.find("broadcast")) spec.averaging.spread.swarm = how->text == "swarm";
    if (const Node* chunks = protocol.find("chunks")) spec.averaging.spread.chunks = to_int(*chunks);
    if (protocol.find("phases")) spec.averaging.phases = build_phases(protocol);
    if (const Node* rate = protocol.find("outer_learning_rate")) spec.averaging.outer_learning_rate = rate->number;
    if (const Node* momentum = protocol.find("outer_momentum")) spec.averaging.outer_momentum = momentum->number;
    if (protocol.find("fragments")) {
        StreamSpec& stream = spec.averaging.stream;
        stream = {to_int(protocol.at("fragments")), to_int(protocol.at("overlap")), protocol.at("keep").number};
        spec.averaging.phases.shards = stream.fragments;
        spec.averaging.phases.by_layers = splits_by_layers(protocol);
    }
    DelayedSpec& delayed = spec.averaging.delayed;
    if (const Node* pushes = protocol.find("delayed_nesterov")) delayed.pushes = to_int(*pushes);
    if (const Node* counts = protocol.find("push_counts")) delayed.whole = counts->text == "whole";
    if (const Node* dylu = protocol.find("dylu")) delayed.dylu = dylu->boolean;
    if (spec.reduces()) spec.collective = build_collective(protocol, spec.name);
    if (const Node* file = protocol.find("file")) spec.plugin = policy_of(*file, protocol, lambda);
    return spec;
}

}  // namespace rubato::cli
