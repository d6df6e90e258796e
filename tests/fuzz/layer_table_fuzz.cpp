// Layer tables in three formats: whatever stands in one, it holds layers that a scenario can use, or it is refused in
// one line.
#include "cli/error.hpp"
#include "cli/layer_table.hpp"
#include "fuzz/check.hpp"

#include <cmath>
#include <cstdint>

using namespace rubato;

namespace {

void check(cli::LayerTable table) {
    fuzz::demand(!table.layers.empty() && table.layers.size() <= 2000, "a table has layers, and not too many");
    fuzz::demand(table.batch_size >= 0 && table.flops_per_s >= 0, "batches and rates are not negative");
    const bool scale = table.format == cli::LayerTable::Format::scale_sim;
    fuzz::demand(table.forward_flops.size() == (scale ? table.layers.size() : 0), "each layer has its operations");
    for (const double flops : table.forward_flops)
        fuzz::demand(flops > 0 && std::isfinite(flops), "operations are above zero and finite");
    const std::int64_t parameters = table.parameters();
    fuzz::demand(parameters >= 0, "the parameters of all layers have a sum");
    if (scale) table.take_rate(1e12, 32);
    const double seconds = table.forward_s() + table.backward_s();
    for (const cli::LayerCost& layer : table.layers) {
        fuzz::demand(!layer.name.empty() && layer.parameters >= 0, "a layer has a name and parameters");
        fuzz::demand(layer.forward_s >= 0 && std::isfinite(layer.forward_s), "times are at least zero and finite");
        fuzz::demand(layer.backward_s >= 0 && std::isfinite(layer.backward_s), "times are at least zero and finite");
    }
    table.fold();
    fuzz::demand(table.parameters() == parameters, "folding keeps parameters");
    fuzz::demand(std::fabs(table.forward_s() + table.backward_s() - seconds) <= 1e-9 * seconds, "folding keeps times");
    for (const cli::LayerCost& layer : table.layers)
        fuzz::demand(parameters == 0 || layer.parameters > 0, "folded layers have parameters");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        check(cli::parse_layer_table({reinterpret_cast<const char*>(data), size}, "t"));
    } catch (const cli::InputError& error) {
        fuzz::demand_one_line(error.what());
    }
    return 0;
}
