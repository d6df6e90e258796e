#include "sim/driver.hpp"

#include "sim/run.hpp"

namespace rubato::sim {

trace::DriverReport run(const RunInput& input) {
    const auto network = open_network({input.scenario, star_hosts(*input.scenario)});
    const auto placement = place(*input.scenario, network->hosts());
    return Run(input, *network, placement).go();
}

std::vector<trace::Place> places(const Scenario& scenario) {
    const auto network = open_network({&scenario, star_hosts(scenario)});
    const auto placement = place(scenario, network->hosts());
    std::vector<trace::Place> result;
    for (std::size_t role = 0; role < placement.host_of_role.size(); ++role)
        result.push_back({network->hosts()[static_cast<std::size_t>(placement.host_of_role[role])].name,
                          placement.device_name_of_role[role]});
    return result;
}

}  // namespace rubato::sim
