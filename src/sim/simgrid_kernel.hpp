// All use of SimGrid's kernel below its public interface: timers, and the one engine that it allows a process.
#pragma once

#include <simgrid/s4u.hpp>

#include <functional>
#include <utility>

namespace simgrid::kernel::timer {
class Timer;
}

namespace rubato::sim {

/// One timer of the kernel; its call runs in the kernel's own context, without an actor.
class KernelAlarm {
public:
    explicit KernelAlarm(std::function<void()> call) : call_(std::move(call)) {}
    /// Replaces what was set before. date: of the engine's clock, not before now.
    void set(double date);
    void clear();

private:
    std::function<void()> call_;
    simgrid::kernel::timer::Timer* timer_ = nullptr;
    double date_ = 0;
};

/// Calls once, at the engine's present time, after what is under way in the kernel.
void call_soon(std::function<void()> call);

/// A new engine at time 0, quiet and without platform, in place of the one before, of which nothing may be in use.
simgrid::s4u::Engine& fresh_engine();

}  // namespace rubato::sim
