#include "sim/simgrid_kernel.hpp"

#include <simgrid/kernel/Timer.hpp>

#include <array>
#include <csignal>
#include <string>
#include <utility>

// The kernel's clock, by its name in the library, as no header declares it. Weak, so that a SimGrid without it loads
// too.
extern double simgrid_clock __asm__("_ZN7simgrid6kernel10EngineImpl4now_E") __attribute__((weak));

namespace rubato::sim {

namespace s4u = simgrid::s4u;

namespace {

/// SimGrid installs handlers of its own; SIGINT and the sanitizers' belong to the program.
class KeepSignals {
public:
    KeepSignals() {
        for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], nullptr, &saved_[i]);
    }
    ~KeepSignals() {
        for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &saved_[i], nullptr);
    }
    KeepSignals(const KeepSignals&) = delete;
    KeepSignals& operator=(const KeepSignals&) = delete;

private:
    static constexpr std::array<int, 3> signals{SIGINT, SIGSEGV, SIGBUS};
    std::array<struct sigaction, 3> saved_{};
};

/// What an engine leaves behind would act on its remains.
void forget_last_engine() {
    // Each engine connects a callback that runs on itself whenever a platform has been loaded.
    s4u::Engine::on_platform_created.disconnect_slots();
    // The clock goes on, and a run must start at 0 to be repeatable to the bit.
    if (&simgrid_clock != nullptr) simgrid_clock = 0;
}

}  // namespace

void KernelAlarm::set(double date) {
    if (timer_ != nullptr) {
        if (date_ == date) return;
        timer_->remove();
    }
    date_ = date;
    timer_ = simgrid::kernel::timer::Timer::set(date, [this] {
        timer_ = nullptr;
        call_();
    });
}

void KernelAlarm::clear() {
    if (timer_ != nullptr) std::exchange(timer_, nullptr)->remove();
}

void call_soon(std::function<void()> call) {
    simgrid::kernel::timer::Timer::set(s4u::Engine::get_clock(), [call = std::move(call)] { call(); });
}

s4u::Engine& fresh_engine() {
    // Never taken down after the last run of the process: 10,000 hosts take 60 ms.
    static s4u::Engine* engine = nullptr;
    if (engine != nullptr) {
        delete engine;
        forget_last_engine();
    }
    const KeepSignals keep;
    static std::string name = "rubato", quiet = "--log=root.thresh:critical", leave = "--cfg=debug/clean-atexit:no";
    static std::array<char*, 4> argv{name.data(), quiet.data(), leave.data(), nullptr};
    int argc = 3;
    engine = new s4u::Engine(&argc, argv.data());
    return *engine;
}

}  // namespace rubato::sim
