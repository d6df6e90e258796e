// Layer tables: what each layer of a network weighs and how long it takes, in three formats (docs/models.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::cli {

/// One layer of a network, weights and biases together.
struct LayerCost {
    std::string name;
    std::int64_t parameters = 0;           ///< 0 or more
    double forward_s = 0, backward_s = 0;  ///< of a batch; backward: gradients of the input and of the weights
    bool operator==(const LayerCost&) const = default;
};

struct LayerTable {
    enum class Format : std::uint8_t { json, astra_sim, scale_sim };
    Format format = Format::json;
    std::string name;               ///< of the network; of the file where that has none
    std::string source;             ///< empty: not told
    double flops_per_s = 0;         ///< that the seconds were derived with; 0: not told
    int batch_size = 0;             ///< samples that the seconds are for; 0: the file does not say
    std::vector<LayerCost> layers;  ///< from input to output, at least one
    /// By layer: operations of one sample forward, a multiplication and an addition being two. Only topologies of
    /// SCALE-Sim, which have no seconds: take_rate() makes them.
    std::vector<double> forward_flops = {};

    std::int64_t parameters() const;
    double forward_s() const;   ///< of all layers
    double backward_s() const;  ///< of all layers
    /// Whether take_rate() can make seconds.
    bool takes_rate() const { return flops_per_s > 0 || !forward_flops.empty(); }
    /// Seconds at another rate (above 0). Of forward_flops they are those of `batch` samples: backward is twice
    /// forward, and once for the first layer, whose input needs no gradient.
    void take_rate(double rate, int batch);
    /// Layers without parameters become part of the one before, or of the first one that has any, so that each layer
    /// has something to send. Without any parameters the table stays as it is.
    void fold();
    bool operator==(const LayerTable&) const = default;
};

/// The format is told from the text: JSON by its brace, a topology of SCALE-Sim by the commas of its header, a workload
/// of ASTRA-sim by the kind of parallelism in its first line. `file`: for messages. Throws InputError, "FILE:LINE:
/// ...", for the first thing that is wrong.
///
/// - JSON: layer_table.schema.json.
/// - ASTRA-sim's DNN workload (text): line 1 the parallelism, line 2 the number of layers, then a line a layer with
///   name, dependency, and (time, communication, bytes) of the forward pass, the gradient of the input and the gradient
///   of the weights, at last the time of the update. Times are nanoseconds. Used are the three times (backward_s is
///   that of both gradients) and the bytes of the last communication: a parameter for every 4, rounded up.
/// - SCALE-Sim's topology (CSV): a header, then a line a layer with name, height and width of the input, height and
///   width of the filter, channels, filters, stride, or two of them. Parameters are those of the filters; the output
///   has (input - filter + stride) / stride places a side, rounded up, as SCALE-Sim has it.
///
/// Of the last two, carriage returns, tabs and spaces, commas at the end of a line and blank lines do not matter.
LayerTable parse_layer_table(const std::string& text, const std::string& file);

/// The same of a file; of one that cannot be read, too.
LayerTable read_layer_table(const std::string& path);

/// The folder of the tables that ship: of the source tree, of the installation, or where it was built.
std::string models_folder();

/// Names of the tables in there, such as "alexnet", in alphabetical order; none where there is no folder.
std::vector<std::string> shipped_tables();

/// The path of such a table, whether it is there or not.
std::string shipped_table(const std::string& name);

}  // namespace rubato::cli
