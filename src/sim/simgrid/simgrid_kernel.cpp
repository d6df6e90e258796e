#include "sim/simgrid/simgrid_kernel.hpp"

#include <simgrid/version.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

// The kernel's clock and the end of its round, by their names in the library, as no header declares them. Weak, so that
// a SimGrid without them loads too.
extern double simgrid_clock __asm__("_ZN7simgrid6kernel10EngineImpl4now_E") __attribute__((weak));
extern "C" void simgrid_handle_ended_actions(const simgrid::kernel::EngineImpl*) __asm__(
    "_ZNK7simgrid6kernel10EngineImpl20handle_ended_actionsEv") __attribute__((weak));

// And what profiles have in store, which the engine follows only as long as something else is to come.
extern char simgrid_future __asm__("future_evt_set") __attribute__((weak));
extern "C" double simgrid_next_date(const void*) __asm__("_ZNK7simgrid6kernel7profile12FutureEvtSet9next_dateEv")
    __attribute__((weak));

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

/// The only network model of the engine, where the library is one whose rounds are known from its source (3.32); null
/// elsewhere, and where the environment asks for SimGrid's own rounds (RUBATO_SIMGRID_ROUNDS=engine, for tests).
simgrid::kernel::resource::Model* network_model() {
    int major = 0;
    int minor = 0;
    int patch = 0;
    sg_version_get(&major, &minor, &patch);
    if (major != 3 || minor != 32 || &simgrid_clock == nullptr || &simgrid_handle_ended_actions == nullptr)
        return nullptr;
    const char* asked = std::getenv("RUBATO_SIMGRID_ROUNDS");
    if (asked != nullptr && std::string(asked) == "engine") return nullptr;
    simgrid::kernel::resource::Model* found = nullptr;
    for (auto* model : s4u::Engine::get_instance()->get_all_models()) {
        if (model->get_name().find("Network") == std::string::npos) continue;
        if (found != nullptr || !model->next_occurring_event_is_idempotent()) return nullptr;
        found = model;
    }
    return found;
}

}  // namespace

KernelClock::KernelClock(std::function<void()> alarm, bool profiles)
    : alarm_(std::move(alarm)), engine_(s4u::Engine::get_instance()->get_impl()) {
    if (!profiles) network_ = network_model();
}

void KernelClock::set(double date) {
    if (date_ == date) return;
    if (network_ == nullptr) {
        if (timer_ != nullptr) timer_->remove();
        timer_ = simgrid::kernel::timer::Timer::set(date, [this] {
            timer_ = nullptr;
            date_ = -1;
            alarm_();
        });
    }
    date_ = date;
}

void KernelClock::clear() {
    date_ = -1;
    if (timer_ != nullptr) std::exchange(timer_, nullptr)->remove();
}

void KernelClock::soon(std::function<void()> call) {
    if (network_ != nullptr)
        soon_.push_back(std::move(call));
    else
        simgrid::kernel::timer::Timer::set(now(), [call = std::move(call)] { call(); });
}

double KernelClock::next_change() const {
    if (network_ != nullptr || &simgrid_future == nullptr || &simgrid_next_date == nullptr) return -1;
    return simgrid_next_date(&simgrid_future);
}

void KernelClock::run() {
    if (network_ == nullptr)
        s4u::Engine::get_instance()->run();
    else
        run_own_rounds();
}

// EngineImpl::run and EngineImpl::solve of SimGrid 3.32, with the same arithmetic in the same order: share the links,
// go to the next date, let the transfers know, call timers, and then whoever waits for transfers that have ended.
void KernelClock::run_own_rounds() {
    while (true) {
        double delta = date_ < 0 ? -1 : date_ - simgrid_clock;
        if (!soon_.empty()) delta = 0;
        const double transfer = network_->next_occurring_event(simgrid_clock);
        if (transfer >= 0 && (delta < 0 || transfer < delta)) delta = transfer;
        if (delta < 0) return;
        simgrid_clock = simgrid_clock + delta;
        network_->update_actions_state(simgrid_clock, delta);
        bool again = true;
        while (again) {
            again = call_what_is_due();
            if (!network_->get_finished_action_set()->empty() || !network_->get_failed_action_set()->empty())
                simgrid_handle_ended_actions(engine_);
        }
    }
}

bool KernelClock::call_what_is_due() {
    bool called = false;
    while (date_ >= 0 && date_ <= simgrid_clock) {
        date_ = -1;
        alarm_();
        called = true;
    }
    while (!soon_.empty()) {
        for (const auto& call : std::exchange(soon_, {})) call();
        called = true;
    }
    return called;
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
