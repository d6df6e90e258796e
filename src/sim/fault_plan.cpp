#include "sim/fault_plan.hpp"

#include "sim/platform/no_such.hpp"

#include <algorithm>

namespace rubato::sim {
FaultPlan::FaultPlan(const Scenario& scenario, double from_s) : scenario_(scenario) {
    for (std::size_t place = 0; place < scenario.faults.size(); ++place) {
        const FaultSpec& spec = scenario.faults[place];
        const std::size_t members = std::max({spec.workers.size(), spec.hosts.size(), spec.links.size()});
        for (std::size_t member = 0; member < members; ++member) {
            Unit unit{{place, 0, spec.at_s, spec.until_s > 0 ? spec.until_s : never}, &spec, member};
            if (spec.every_s > 0) draw(unit, 0);
            while (unit.end_s <= from_s) {
                unit.broken = true;
                change(unit);
            }
            units_.push_back(unit);
        }
    }
}

void FaultPlan::draw(Unit& unit, double after_s) const {
    unit.draw(scenario_.seeds.timing, static_cast<std::uint32_t>(unit.member), learn::Purpose::fault,
              unit.spec->every_s, unit.spec->for_s, after_s);
}

void FaultPlan::change(Unit& unit) const {
    unit.broken = !unit.broken;
    if (unit.broken) return;
    ++unit.number;
    if (unit.spec->every_s > 0)
        draw(unit, unit.end_s);
    else
        unit.begin_s = unit.end_s = never;
}

void check_faults(const Scenario& scenario, Network& network) {
    std::vector<std::string> names;
    for (const HostInfo& host : network.hosts()) names.push_back(host.name);
    const auto named = [&](const char* key, std::size_t fault, std::size_t index, auto&& look_up) {
        try {
            look_up();
        } catch (const PlatformError& error) {
            throw PlatformError("faults[" + std::to_string(fault) + "]." + key + "[" + std::to_string(index) +
                                "]: " + error.what());
        }
    };
    for (std::size_t i = 0; i < scenario.faults.size(); ++i) {
        const FaultSpec& fault = scenario.faults[i];
        for (std::size_t at = 0; at < fault.hosts.size(); ++at)
            named("hosts", i, at, [&] {
                if (std::ranges::find(names, fault.hosts[at]) == names.end())
                    throw no_such("host", fault.hosts[at], names);
            });
        // Nothing moves yet, so the links may be tried.
        for (std::size_t at = 0; at < fault.links.size(); ++at)
            named("links", i, at, [&] {
                network.degrade(fault.links[at], fault.bandwidth_factor, fault.latency_factor);
                network.degrade(fault.links[at], 1, 1);
            });
    }
}

}  // namespace rubato::sim
