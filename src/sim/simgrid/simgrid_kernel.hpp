// All use of SimGrid's kernel below its public interface: timers, the one engine that it allows a process, and the loop
// that moves time on.
#pragma once

#include <simgrid/s4u.hpp>

#include <functional>
#include <utility>
#include <vector>

namespace simgrid::kernel {
class EngineImpl;
namespace timer {
class Timer;
}
namespace resource {
class Model;
}
}  // namespace simgrid::kernel

namespace rubato::sim {

/// Virtual time of one run without actors: an alarm, calls for "now", and transfers. Two ways to move it on that give
/// the same dates to the bit: SimGrid's own Engine::run, whose round asks each of its five models (processors, disks,
/// ...) and allocates a timer for each alarm; or a round of our own over the network's model alone, which is what a
/// platform without profiles needs, at a fraction of the cost.
class KernelClock {
public:
    /// alarm: called when what `set` asked for has come, in the kernel's context. profiles: the platform has some, so
    /// that the rounds are SimGrid's.
    KernelClock(std::function<void()> alarm, bool profiles);
    KernelClock(const KernelClock&) = delete;
    KernelClock& operator=(const KernelClock&) = delete;

    /// Seconds of the engine.
    double now() const { return simgrid::s4u::Engine::get_clock(); }
    /// Replaces what was set before. date: of the engine's clock, not before now.
    void set(double date);
    void clear();
    /// Calls once, at the engine's present time, after what is under way in the kernel.
    void soon(std::function<void()> call);
    /// When a profile changes something next, in seconds of the engine; -1: never.
    double next_change() const;
    /// Until neither an alarm nor a call nor a transfer is left.
    void run();

private:
    void run_own_rounds();
    bool call_what_is_due();

    std::function<void()> alarm_;
    simgrid::kernel::EngineImpl* engine_ = nullptr;
    simgrid::kernel::resource::Model* network_ = nullptr;  ///< null: the rounds are SimGrid's
    simgrid::kernel::timer::Timer* timer_ = nullptr;       ///< of SimGrid's rounds
    double date_ = -1;                                     ///< of the alarm; -1: none
    std::vector<std::function<void()>> soon_;              ///< of our own rounds
};

/// A new engine at time 0, quiet and without platform, in place of the one before, of which nothing may be in use.
simgrid::s4u::Engine& fresh_engine();

}  // namespace rubato::sim
