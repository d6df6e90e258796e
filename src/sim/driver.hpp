// The simulation driver: runs roles under virtual time over a modelled network.
#pragma once

#include "core/role.hpp"
#include "learn/task.hpp"
#include "sim/network.hpp"
#include "sim/placement.hpp"
#include "trace/recorder.hpp"
#include "trace/run_input.hpp"

#include <memory>

namespace rubato::sim {

using trace::RunInput;

/// A scenario on its modelled cluster. The platform is opened once: SimGrid bears one at a time, and some only once a
/// process.
class Simulation {
public:
    /// Throws PlatformError for a bad platform. The scenario must outlive the simulation.
    explicit Simulation(const Scenario& scenario);
    /// Where the roles are placed, by role.
    std::vector<trace::Place> places() const;
    /// What the platform's reader and the tables of devices had to remark.
    std::vector<std::string> warnings() const;
    Network& network() { return *network_; }
    const Placement& placement() const { return placement_; }
    /// Runs to the end, once. A deadlock is a status of the report.
    trace::DriverReport run(const RunInput& input);

private:
    std::unique_ptr<Network> network_;
    Placement placement_;
};

}  // namespace rubato::sim
