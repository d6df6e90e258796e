#include "sim/schedule/schedule_driver.hpp"

#include "sim/schedule/schedule_run.hpp"

namespace rubato::sim {

trace::DriverReport run_schedule(const trace::RunInput& input) {
    const std::string& file = input.scenario->schedule.trace;
    const DelayTrace trace = read_delays(file, input.scenario->lambda());
    ScheduleRun run(input, trace, [&input](Time now, RoleId role, const Event& event, const Actions& actions) {
        if (input.recorder != nullptr) input.recorder->step(now, role, event, actions);
        if (input.observer) input.observer(now, role, event, actions);
    });
    const auto report = run.go();
    if (!run.stopped_by_itself())
        throw ScheduleError(file + ": ends before the run does: it has become shorter since it was checked");
    return report;
}

std::vector<trace::Place> schedule_places(const Scenario& scenario) {
    return std::vector<trace::Place>(static_cast<std::size_t>(scenario.lambda()) + 1, {"schedule", "default"});
}

}  // namespace rubato::sim
