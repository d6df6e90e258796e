// Opens a network model. SimGrid's is found in a shared module, so that commands that do not simulate never load
// SimGrid.
#include "sim/flow/flow_network.hpp"
#include "trace/load_module.hpp"

namespace rubato::sim {
namespace {

using OpenFunction = Network* (*)(const NetworkRequest*);

OpenFunction load() {
    try {
        return reinterpret_cast<OpenFunction>(trace::load_module("rubato-simgrid.so", "rubato_open_simgrid"));
    } catch (const trace::ModuleError& problem) {
        throw PlatformError(std::string("network model: ") + problem.what());
    }
}

}  // namespace

std::unique_ptr<Network> open_network(const NetworkRequest& request) {
    const std::string& model = request.scenario->cluster.network.model;
    if (model == "flow") return open_flow_network(request);
    if (model != "simgrid")
        throw PlatformError("unknown network model \"" + model + "\"; expected \"simgrid\" or \"flow\"");
    static const OpenFunction open = load();
    return std::unique_ptr<Network>(open(&request));
}

}  // namespace rubato::sim
