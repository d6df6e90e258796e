#include "cli/backends.hpp"

#include "exec/local.hpp"
#include "sim/driver.hpp"
#include "sim/schedule/schedule_driver.hpp"

namespace rubato::cli {
namespace {

class SimBackend final : public Backend {
public:
    explicit SimBackend(const Scenario& scenario) : simulation_(scenario) {}
    std::vector<trace::Place> places() const override { return simulation_.places(); }
    std::vector<std::string> warnings() const override { return simulation_.warnings(); }
    bool one_thread() const override { return true; }
    trace::DriverReport run(const trace::RunInput& input) override { return simulation_.run(input); }

private:
    sim::Simulation simulation_;
};

/// Virtual time without a cluster.
class ScheduleBackend final : public Backend {
public:
    explicit ScheduleBackend(const Scenario& scenario) : scenario_(scenario) {}
    std::vector<trace::Place> places() const override { return sim::schedule_places(scenario_); }
    std::vector<std::string> warnings() const override { return {}; }
    bool one_thread() const override { return true; }
    trace::DriverReport run(const trace::RunInput& input) override { return sim::run_schedule(input); }

private:
    const Scenario& scenario_;
};

class LocalBackend final : public Backend {
public:
    explicit LocalBackend(const Scenario& scenario) : scenario_(scenario) {}
    std::vector<trace::Place> places() const override { return exec::local_places(scenario_); }
    std::vector<std::string> warnings() const override { return {}; }
    bool one_thread() const override { return false; }
    trace::DriverReport run(const trace::RunInput& input) override { return exec::run_local(input); }

private:
    const Scenario& scenario_;
};

}  // namespace

std::unique_ptr<Backend> open_backend(const std::string& backend, const Scenario& scenario) {
    require_backend(backend);
    if (!scenario.schedule.trace.empty()) return std::make_unique<ScheduleBackend>(scenario);
    if (backend == "local") return std::make_unique<LocalBackend>(scenario);
    return std::make_unique<SimBackend>(scenario);
}

}  // namespace rubato::cli
