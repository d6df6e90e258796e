// What breaks when (`faults` of a scenario): a pure function of the scenario and its seed for timing.
#pragma once

#include "core/scenario.hpp"
#include "sim/network.hpp"
#include "sim/spell.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace rubato::sim {

/// Spells of everything that breaks. Those at random are keyed by seeds.timing, the fault's place in the list and the
/// member's in the fault: the same under every protocol, in every backend, and in a run that goes on from a checkpoint.
class FaultPlan {
public:
    static constexpr double never = std::numeric_limits<double>::infinity();

    /// One worker, host or link of one fault.
    struct Unit : Spell {  ///< end_s never: for good
        const FaultSpec* spec = nullptr;
        std::size_t member = 0;  ///< in the list of the fault
        bool broken = false;     ///< the spell is under way
    };

    /// The scenario must outlive it. from_s: spells that have ended by then are over.
    FaultPlan(const Scenario& scenario, double from_s);
    std::vector<Unit>& units() { return units_; }
    /// When the state of a unit changes next, s; never: not any more.
    static double next(const Unit& unit) { return unit.broken ? unit.end_s : unit.begin_s; }
    /// The change that was due is done.
    void change(Unit& unit) const;

private:
    void draw(Unit& unit, double after_s) const;

    const Scenario& scenario_;
    std::vector<Unit> units_;
};

/// Throws PlatformError where a fault names a host or link that is not there, or asks for what the network cannot do.
void check_faults(const Scenario& scenario, Network& network);

}  // namespace rubato::sim
