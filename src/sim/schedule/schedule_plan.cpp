#include "sim/schedule/schedule_plan.hpp"

#include "sim/schedule/schedule_run.hpp"

namespace rubato::sim {

SchedulePlan plan_schedule(const Scenario& scenario, std::int64_t samples, std::int64_t parameters) {
    const DelayTrace trace = read_delays(scenario.schedule.trace, scenario.lambda());
    Scenario timing = scenario;
    timing.model.gradients = false;
    timing.stop.target.reset();
    timing.evaluate = {};
    trace::RunInput input;
    input.scenario = &timing;
    input.samples = samples;
    input.parameters = parameters;
    ScheduleRun run(input, trace, {});
    run.go();
    return {run.accepted(), run.stopped_by_itself(), trace.checksum};
}

}  // namespace rubato::sim
