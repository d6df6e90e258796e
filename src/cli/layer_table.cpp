#include "cli/layer_table.hpp"

#include "cli/json_reader.hpp"
#include "cli/layer_table_text.hpp"
#include "cli/schema.hpp"
#include "cli/suggest.hpp"

#include <algorithm>
#include <filesystem>

namespace rubato::cli {

std::string_view layer_table_schema_text();

namespace {

namespace fs = std::filesystem;

const Node& table_schema() {
    static const Node schema = parse_json(std::string(layer_table_schema_text()),
                                          {std::make_shared<const std::string>("layer_table.schema.json"), 1, 0});
    return schema;
}

/// Told here, before the walk, whose hints are about scenarios.
void refuse_unknown_keys(const Node& object, const Node& schema, const std::string& path) {
    std::vector<std::string> known;
    for (const auto& member : schema.at("properties").members) known.push_back(member.key);
    for (const auto& member : object.members) {
        if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
        const std::string near = nearest(member.key, known);
        const bool scenario = path.empty() && schema_at(member.key) != nullptr;
        throw InputError(
            member.where, path + member.key,
            "unknown key" + (scenario       ? "; this is a key of scenarios, and the file should be a layer table"
                             : near.empty() ? "; known are " + one_of(known, "and")
                                            : "; did you mean \"" + near + "\"?"));
    }
}

LayerTable parse_json_table(const std::string& text, const std::string& file) {
    Node root = parse_json(text, {std::make_shared<const std::string>(file), 1, 0});
    const Node& schema = table_schema();
    if (!root.is(Node::Kind::object))
        throw InputError(root.where, "", "expected a JSON object, found " + describe(root));
    refuse_unknown_keys(root, schema, "");
    if (const Node* layers = root.find("layers")) {
        const Node& item = schema.at("properties").at("layers").at("items");
        for (std::size_t i = 0; i < layers->items.size(); ++i)
            refuse_unknown_keys(layers->items[i], item, "layers[" + std::to_string(i) + "].");
    }
    check_and_fill(root, schema, "");
    LayerTable table;
    table.name = root.at("name").text;
    table.source = text_at(root, "source");
    if (const Node* rate = root.find("flops_per_s")) table.flops_per_s = rate->number;
    if (const Node* batch = root.find("batch_size")) table.batch_size = static_cast<int>(batch->whole());
    for (const Node& layer : root.at("layers").items)
        table.layers.push_back({layer.at("name").text, layer.at("parameters").whole(), layer.at("forward_s").number,
                                layer.at("backward_s").number});
    return table;
}

}  // namespace

std::int64_t LayerTable::parameters() const {
    std::int64_t sum = 0;
    for (const LayerCost& layer : layers) sum += layer.parameters;
    return sum;
}

double LayerTable::forward_s() const {
    double sum = 0;
    for (const LayerCost& layer : layers) sum += layer.forward_s;
    return sum;
}

double LayerTable::backward_s() const {
    double sum = 0;
    for (const LayerCost& layer : layers) sum += layer.backward_s;
    return sum;
}

void LayerTable::take_rate(double rate, int batch) {
    if (forward_flops.empty()) {
        for (LayerCost& layer : layers) {
            layer.forward_s *= flops_per_s / rate;
            layer.backward_s *= flops_per_s / rate;
        }
    }
    for (std::size_t i = 0; i < forward_flops.size(); ++i) {
        layers[i].forward_s = forward_flops[i] * batch / rate;
        layers[i].backward_s = (i == 0 ? 1 : 2) * layers[i].forward_s;
    }
    flops_per_s = rate;
    batch_size = batch;
}

void LayerTable::fold() {
    if (parameters() == 0) return;
    std::vector<LayerCost> folded;
    LayerCost pending;  // what stands before the first layer with parameters
    for (const LayerCost& layer : layers) {
        if (layer.parameters == 0) {
            LayerCost& before = folded.empty() ? pending : folded.back();
            before.forward_s += layer.forward_s;
            before.backward_s += layer.backward_s;
            continue;
        }
        folded.push_back(layer);
        folded.back().forward_s += pending.forward_s;
        folded.back().backward_s += pending.backward_s;
        pending = {};
    }
    layers = std::move(folded);
    forward_flops.clear();
}

LayerTable parse_layer_table(const std::string& text, const std::string& file) {
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first != std::string::npos && (text[first] == '{' || text[first] == '[')) return parse_json_table(text, file);
    return parse_layer_text(text, file);
}

LayerTable read_layer_table(const std::string& path) {
    return parse_layer_table(read_file(path), path);
}

std::string models_folder() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    const fs::path above = program.parent_path().parent_path();
    const fs::path places[] = {above / "scenarios" / "models", above / "share" / "rubato" / "models",
                               RUBATO_MODELS_DIR};
    for (const auto& place : places) {
        if (fs::is_directory(place, error)) return place.string();
    }
    return {};
}

std::vector<std::string> shipped_tables() {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator file(models_folder(), error), end; !error && file != end; file.increment(error)) {
        if (file->path().extension() == ".json") names.push_back(file->path().stem().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string shipped_table(const std::string& name) {
    return (fs::path(models_folder()) / (name + ".json")).string();
}

}  // namespace rubato::cli
