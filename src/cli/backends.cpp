#include "cli/backends.hpp"

#include "exec/local.hpp"
#include "sim/driver.hpp"
#include "sim/placement.hpp"

namespace rubato::cli {
namespace {

template <class Input>
Input fill(const BackendInput& from) {
    Input input;
    input.scenario = from.scenario;
    input.task = from.task;
    input.samples = from.samples;
    input.parameters = from.parameters;
    input.recorder = from.recorder;
    input.interrupted = from.interrupted;
    input.tick = from.tick;
    return input;
}

}  // namespace

Surroundings surroundings(const std::string& backend, const Scenario& scenario) {
    if (backend == "local") return {exec::local_places(scenario), {}};
    const auto network = sim::open_network({&scenario, sim::star_hosts(scenario)});
    const sim::Placement placement = sim::place(scenario, network->hosts());
    Surroundings result{{}, network->warnings()};
    result.warnings.insert(result.warnings.end(), placement.warnings.begin(), placement.warnings.end());
    for (std::size_t role = 0; role < placement.host_of_role.size(); ++role) {
        const auto host = static_cast<std::size_t>(placement.host_of_role[role]);
        result.places.push_back({network->hosts()[host].name, placement.device_name_of_role[role]});
    }
    return result;
}

trace::DriverReport run_backend(const std::string& backend, const BackendInput& input) {
    if (backend == "local") return exec::run_local(fill<exec::RunInput>(input));
    return sim::run(fill<sim::RunInput>(input));
}

}  // namespace rubato::cli
