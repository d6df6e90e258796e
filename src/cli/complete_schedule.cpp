// Scenarios whose order of updates is a trace of delays.
#include "cli/layers.hpp"
#include "cli/load.hpp"
#include "sim/schedule/delays.hpp"
#include "sim/schedule/schedule_plan.hpp"

#include <fmt/format.h>

namespace rubato::cli {
namespace {

sim::SchedulePlan plan_of(const Loaded& loaded) {
    try {
        return sim::plan_schedule(loaded.scenario, loaded.samples, loaded.parameters);
    } catch (const sim::ScheduleError& error) {
        throw InputError(error.what());
    }
}

}  // namespace

void complete_schedule(Loaded& loaded) {
    Node* schedule = loaded.tree.find("schedule");
    if (!schedule) return;
    const sim::SchedulePlan plan = plan_of(loaded);
    const std::string checksum = fmt::format("{:016x}", plan.checksum);
    if (const Node* given = schedule->find("checksum"); given && given->text != checksum) {
        throw InputError(given->where, "schedule.checksum",
                         "expected \"" + given->text + "\", but " + loaded.scenario.schedule.trace + " has \"" +
                             checksum + "\": the trace is another one by now; leave the key out to take it as it is");
    }
    if (!schedule->find("checksum")) schedule->set("checksum", Node::of(checksum), {});
    if (plan.stops) return;
    Node& stop = *loaded.tree.find("stop");
    if (const Node* given = stop.find("gradients")) {
        loaded.notes.push_back(fmt::format("stop.gradients is {} instead of {}: the schedule has no more",
                                           plan.gradients, given->whole()));
    }
    stop.set("gradients", Node::of(plan.gradients), {});
    loaded.scenario.stop.gradients = plan.gradients;
    put_in_order(loaded.tree);
}

}  // namespace rubato::cli
