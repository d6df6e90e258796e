// Scenarios whose order of updates is a trace of delays.
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
    // What the command line names is another trace on purpose.
    if (const Node* given = schedule->find("checksum"); given && given->where.rank < schedule->at("trace").where.rank)
        schedule->erase("checksum");
    if (const Node* given = schedule->find("checksum"); given && given->text != checksum) {
        throw InputError(given->where, "schedule.checksum",
                         "expected \"" + given->text + "\", but " + loaded.scenario.schedule.trace + " has \"" +
                             checksum + "\": the trace is another one by now; leave the key out to take it as it is");
    }
    if (!schedule->find("checksum")) {  // otherwise this is what an earlier run has written
        schedule->set("checksum", Node::of(checksum), {});
        for (const char* key : {"cost", "cluster", "faults"})
            if (const Node* charged = loaded.tree.find(key); charged && charged->where.file)
                loaded.notes.push_back(std::string(key) +
                                       " plays no part: the schedule gives the order of the updates");
    }
    if (plan.stops) return;
    // Not in the tree: with another trace it would be another number.
    if (const auto& given = loaded.scenario.stop.gradients) {
        loaded.notes.push_back(
            fmt::format("stop.gradients is {}, and the schedule has no more than {}", *given, plan.gradients));
    }
    loaded.scenario.stop.gradients = plan.gradients;
}

}  // namespace rubato::cli
