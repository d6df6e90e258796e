#include "sim/driver.hpp"

#include "sim/fault_plan.hpp"
#include "sim/run.hpp"

namespace rubato::sim {

Simulation::Simulation(const Scenario& scenario)
    : network_(open_network({&scenario, star_hosts(scenario), scenario.all_pass_server(), servers_apart(scenario)})),
      placement_(place(scenario, network_->hosts())) {
    check_faults(scenario, *network_);
}

std::vector<trace::Place> Simulation::places() const {
    std::vector<trace::Place> result;
    for (std::size_t role = 0; role < placement_.host_of_role.size(); ++role)
        result.push_back({network_->hosts()[static_cast<std::size_t>(placement_.host_of_role[role])].name,
                          placement_.device_name_of_role[role]});
    return result;
}

std::vector<std::string> Simulation::warnings() const {
    std::vector<std::string> result = network_->warnings();
    result.insert(result.end(), placement_.warnings.begin(), placement_.warnings.end());
    return result;
}

trace::DriverReport Simulation::run(const RunInput& input) {
    return Run(input, *network_, placement_).go();
}

}  // namespace rubato::sim
