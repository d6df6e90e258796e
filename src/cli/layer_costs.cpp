#include "cli/layer_costs.hpp"

#include "cli/complete.hpp"
#include "cli/estimate.hpp"
#include "cli/json_reader.hpp"
#include "cli/layer_table.hpp"
#include "cli/node_value.hpp"
#include "cli/suggest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>

namespace rubato::cli {
namespace {

using Kind = Node::Kind;
namespace fs = std::filesystem;

/// The points of a sweep read the same file again and again.
std::shared_ptr<const LayerTable> shared_table(const std::string& path) {
    struct Entry {
        std::string text;
        std::shared_ptr<const LayerTable> table;
    };
    static std::mutex mutex;
    static std::map<std::string, Entry> known;
    const std::string text = read_file(path);
    const std::lock_guard lock(mutex);
    Entry& entry = known[path];
    if (!entry.table || entry.text != text)
        entry = {text, std::make_shared<const LayerTable>(parse_layer_table(text, path))};
    return entry.table;
}

/// A word without a slash and a dot names a table that ships; anything else is a path, relative to the scenario.
std::string path_of(const Node& node) {
    if (node.text.find_first_of("/.") == std::string::npos) {
        const auto known = shipped_tables();
        if (std::find(known.begin(), known.end(), node.text) != known.end()) return shipped_table(node.text);
        const std::string near = nearest(node.text, known);
        throw InputError(node.where, "cost.layers",
                         "there is no table \"" + node.text + "\"; " +
                             (known.empty()  ? "the tables that ship are not installed"
                              : near.empty() ? "there are " + one_of(known, "and")
                                             : "did you mean \"" + near + "\"?"));
    }
    const fs::path folder = node.where.line > 0 ? fs::path(*node.where.file).parent_path() : fs::path();
    const std::string path = (folder / node.text).lexically_normal().string();
    std::error_code error;
    if (!fs::exists(path, error)) throw InputError(node.where, "cost.layers", "there is no file " + path);
    return path;
}

/// A whole number as the walk will take it.
std::optional<int> batch_of(const Node& node) {
    if (!node.is_number() || !node.is_whole() || node.whole() < 1 ||
        node.whole() > std::numeric_limits<std::int32_t>::max())
        return {};
    return to_int(node);
}

std::optional<double> rate_of(const Node& node) {
    try {
        if (!node.is_number() && !node.is(Kind::string)) return {};
        const double rate = quantity(node, Quantity::speed);
        return rate > 0 ? std::optional(rate) : std::nullopt;
    } catch (const sim::UnitError&) {
        return {};
    }
}

Node layer_node(const LayerCost& layer, const Where& where) {
    Node node = Node::object();
    node.where = where;
    const auto set = [&](const char* key, Node value) {
        value.where = where;
        node.set(key, std::move(value), where);
    };
    if (!layer.name.empty()) set("name", Node::of(layer.name));
    set("bytes", Node::of(4 * layer.parameters));
    set("forward_s", Node::of(layer.forward_s));
    set("backward_s", Node::of(layer.backward_s));
    return node;
}

/// For how many samples the seconds of the table are; 0: nobody says.
int table_batch(const LayerTable& table, const Node* given) {
    const int wanted = given ? *batch_of(*given) : 0;
    if (wanted > 0 && table.batch_size > 0 && wanted != table.batch_size)
        throw InputError(given->where, "cost.layers_batch_size",
                         fmt::format("the seconds of {} are for {} samples, as it says itself: expected {}, or no such "
                                     "key",
                                     table.name, table.batch_size, table.batch_size));
    return wanted > 0 ? wanted : table.batch_size;
}

/// Whether the layers have seconds: all of them, or none.
bool with_seconds(const Node& layers) {
    const bool all = layers.items.front().find("forward_s") != nullptr;
    for (std::size_t i = 0; i < layers.items.size(); ++i) {
        const Node& layer = layers.items[i];
        const std::string path = fmt::format("cost.layers[{}]", i);
        const bool forward = layer.find("forward_s"), backward = layer.find("backward_s");
        if (forward != backward)
            refuse(layer, path,
                   fmt::format("\"{}\" is missing beside {}", forward ? "backward_s" : "forward_s",
                               forward ? "forward_s" : "backward_s"));
        if (forward != all)
            refuse(layer, path,
                   fmt::format("{} seconds, and cost.layers[0] has {}: expected them of all layers or of none",
                               forward ? "has" : "has no", all ? "some" : "none"));
    }
    return all;
}

/// A layer may take no time, as one that only reshapes; all of them together may not.
void require_some_time(const Node& layers) {
    for (const Node& layer : layers.items)
        for (const char* key : {"forward_s", "backward_s"})
            if (quantity(layer.at(key), Quantity::duration) > 0) return;
    refuse(layers, "cost.layers",
           "take 0 s together: expected a forward_s or backward_s above 0, or none in any layer");
}

}  // namespace

void use_layer_tables(Node& root) {
    Node* cost = root.find("cost");
    if (!cost || !cost->is(Kind::object)) return;
    const Node* named = cost->find("layers");
    if (!named || !named->is(Kind::string) || named->text.empty()) return;
    const Node* batch = cost->find("layers_batch_size");
    const Node* rate = cost->find("layers_rate");
    if ((batch && !batch_of(*batch)) || (rate && !rate_of(*rate))) return;
    const std::string path = path_of(*named);
    LayerTable table = *shared_table(path);
    const bool no_seconds = table.format == LayerTable::Format::scale_sim;
    if (rate && !table.takes_rate())
        refuse(*rate, "cost.layers_rate",
               table.name + " does not tell the rate that its seconds are of: expected no such key");
    if (!rate && no_seconds)
        refuse(*named, "cost.layers",
               "a topology of SCALE-Sim has no seconds: expected cost.layers_rate beside it, such as \"5Tf\"");
    int samples = table_batch(table, batch);
    if (no_seconds) samples = std::max(samples, 1);
    if (rate) table.take_rate(*rate_of(*rate), samples);
    table.fold();
    if (table.parameters() == 0) refuse(*named, "cost.layers", path + " has no layer with parameters");
    const Where where = named->where;
    Node list;
    list.kind = Kind::array;
    list.where = where;
    for (const LayerCost& layer : table.layers) list.items.push_back(layer_node(layer, where));
    cost->set("layers", std::move(list), where);
    cost->erase("layers_rate");
    if (samples > 0 && !batch) {
        Node node = Node::of(static_cast<std::int64_t>(samples));
        node.where = where;
        cost->set("layers_batch_size", std::move(node), where);
    }
    if (cost->find("comment")) return;
    Node comment = Node::of("Layers of " + table.name + (table.source.empty() ? "" : " (" + table.source + ")") + ".");
    comment.where = where;
    cost->set("comment", std::move(comment), where);
}

void complete_layers(Node& root, std::vector<std::string>& notes) {
    Node* cost = root.find("cost");
    if (!cost) return;
    const Node* layers = cost->find("layers");
    if (const Node* rate = cost->find("layers_rate"))
        refuse(*rate, "cost.layers_rate", "goes with cost.layers that name a table");
    const Node* batch = cost->find("layers_batch_size");
    if (!layers) {
        if (batch) refuse(*batch, "cost.layers_batch_size", "goes with cost.layers that have seconds");
        return;
    }
    const bool seconds = with_seconds(*layers);
    if (seconds) require_some_time(*layers);
    if (batch && !seconds)
        refuse(*batch, "cost.layers_batch_size",
               "the layers have no seconds: expected forward_s and backward_s in each");
    if (seconds && !batch) {
        const std::int64_t samples = root.at("workers").at("batch_size").whole();
        notes.push_back(
            fmt::format("cost.layers: nobody says for how many samples the seconds are, so they are taken "
                        "for {}, workers.batch_size; cost.layers_batch_size={} says so",
                        samples, samples));
        cost->set("layers_batch_size", Node::of(samples), {});
    }
    if (cost->find("push_bytes")) return;
    std::int64_t sum = 0;
    for (const Node& layer : layers->items) sum += std::llround(quantity(layer.at("bytes"), Quantity::size));
    cost->set("push_bytes", Node::of(sum), {});
}

void build_layers(const Node& cost, std::int64_t push_bytes, Scenario& scenario) {
    const Node* layers = cost.find("layers");
    if (!layers) return;
    for (const Node& layer : layers->items) {
        scenario.layers.push_back(std::llround(quantity(layer.at("bytes"), Quantity::size)));
        if (const Node* forward = layer.find("forward_s"))
            scenario.layer_times.push_back(
                {quantity(*forward, Quantity::duration), quantity(layer.at("backward_s"), Quantity::duration)});
    }
    if (const Node* batch = cost.find("layers_batch_size")) scenario.layer_batch_size = to_int(*batch);
    const std::int64_t sum = std::accumulate(scenario.layers.begin(), scenario.layers.end(), std::int64_t{0});
    if (sum != push_bytes)
        refuse(*layers, "cost.layers", fmt::format("have {} bytes together, and push_bytes says {}", sum, push_bytes));
}

std::string layers_text(const Scenario& scenario) {
    std::string text = fmt::format("{}, of {} parameters", scenario.layers.size(),
                                   count_text(static_cast<double>(scenario.cost.push_bytes) / 4));
    if (scenario.layer_times.empty()) return text + "; no seconds";
    double forward = 0, backward = 0;
    for (const LayerTime& time : scenario.layer_times) {
        forward += time.forward_s;
        backward += time.backward_s;
    }
    return text + fmt::format("; forward {}, backward {} for a batch of {}", seconds_text(forward),
                              seconds_text(backward), scenario.layer_batch_size);
}

}  // namespace rubato::cli
