// What only other rooms know: samples of an epoch, parameters of a model; and then, where a schedule ends.
#include "cli/complete.hpp"
#include "cli/complete_averaging.hpp"
#include "cli/complete_collective.hpp"
#include "cli/complete_shards.hpp"
#include "cli/load.hpp"
#include "learn/task.hpp"

#include <stdexcept>

namespace rubato::cli {
namespace {

bool computes_by_flops(const Scenario& scenario) {
    for (const auto& group : scenario.workers.groups) {
        if (scenario.cluster.devices.at(group.device).kind == DeviceSpec::Kind::flops) return true;
    }
    return false;
}

void complete_from_learning(Loaded& loaded) {
    Scenario& scenario = loaded.scenario;
    learn::TaskSize size;
    try {
        size = learn::task_size(scenario);
    } catch (const std::runtime_error& error) {
        throw InputError(error.what());
    }
    loaded.samples = size.samples;
    loaded.parameters = size.parameters;
    const Node& data = loaded.tree.at("data");
    if (size.samples < 1) throw InputError(data.where, "data", "no training samples are left to train on");
    const Node& stop = loaded.tree.at("stop");
    if (const Node* epochs = stop.find("epochs"); epochs && epochs->number * static_cast<double>(size.samples) < 0.5)
        throw InputError(epochs->where, "stop.epochs",
                         "asks for not one of the " + std::to_string(size.samples) + " training samples of an epoch");
    // Those of what learns; without gradients, of what is charged, unless that has none.
    if (scenario.model.gradients || scenario.layers.empty()) scenario.layers = size.layers;
    check_layers(loaded.tree, scenario);
    CostSpec& cost = scenario.cost;
    // float32 weights and gradients.
    const Node* given = loaded.tree.find("cost");
    if (cost.model.empty() && !(given && given->find("push_bytes"))) {
        cost.push_bytes = cost.pull_bytes = 4 * size.parameters;
    }
    check_phases(loaded.tree, scenario, loaded.parameters);
    check_collective(loaded.tree, scenario, loaded.parameters);
    if (cost.parameters == 0) cost.parameters = size.parameters > 0 ? size.parameters : cost.push_bytes / 4;
    if (cost.flops_per_sample <= 0) cost.flops_per_sample = size.flops_per_sample;
    // A schedule charges no machine.
    if (cost.flops_per_sample <= 0 && computes_by_flops(scenario) && scenario.schedule.trace.empty()) {
        // Analytic models take no time worth naming: one operation a weight keeps virtual time moving.
        if (size.parameters > 0) {
            cost.flops_per_sample = static_cast<double>(size.parameters);
            return;
        }
        throw InputError(
            loaded.tree.at("cost").where, "cost",
            "a worker's device computes by FLOPs, but flops_per_sample is not given: give it, or seconds in "
            "cluster.devices");
    }
    const auto slices = (size.samples + scenario.workers.slice_size() - 1) / scenario.workers.slice_size();
    if (slices < scenario.lambda() && scenario.data.sampling == Sampling::shared_epoch) {
        loaded.notes.push_back("an epoch has " + std::to_string(slices) +
                               (slices == 1 ? " slice for " : " slices for ") + std::to_string(scenario.lambda()) +
                               " workers: some get none in each epoch");
    }
}

}  // namespace

void complete_sizes(Loaded& loaded) {
    complete_from_learning(loaded);
    complete_schedule(loaded);
}

Loaded load_scenario(const std::string& path, const std::vector<std::string>& sets) {
    try {
        Loaded loaded = read_scenario(path, sets);
        complete_sizes(loaded);
        loaded.resolved_json = to_json(loaded.tree);
        return loaded;
    } catch (const InputError& error) {
        if (!error.about_default()) throw;
        throw InputError(path + ": " + error.what());
    }
}

}  // namespace rubato::cli
