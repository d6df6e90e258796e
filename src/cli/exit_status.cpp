#include "cli/exit_status.hpp"

#include "cli/error.hpp"
#include "cli/expression.hpp"
#include "cli/log.hpp"
#include "learn/error.hpp"
#include "sim/network.hpp"
#include "sim/schedule/delays.hpp"
#include "trace/plugin.hpp"
#include "trace/recorder.hpp"

#include <chrono>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <thread>

namespace rubato::cli {

namespace {

bool others_tell = false;

void wrong_input(const std::string& text) {
    if (!others_tell) return error(text);
    // Launchers end all ranks as soon as one has failed: the one that speaks goes first.
    std::this_thread::sleep_for(std::chrono::seconds(1));
}

}  // namespace

void leave_wrong_input_to_others() {
    others_tell = true;
}

int guarded(const std::function<int()>& command) {
    try {
        const int status = command();
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw trace::OutputError("stdout cannot be written");
        return status;
    } catch (const InputError& e) {
        wrong_input(e.what());
    } catch (const ExpressionError& e) {
        wrong_input(e.what());
    } catch (const trace::PluginError& e) {
        wrong_input(e.what());
    } catch (const learn::InputError& e) {
        wrong_input(e.what());
    } catch (const sim::ScheduleError& e) {
        wrong_input(e.what());
    } catch (const sim::PlatformError& e) {
        wrong_input(e.what());
    } catch (const trace::OutputError& e) {
        error(e.what());
    } catch (const std::system_error& e) {
        // The libraries that print report a full disk or a closed stdout this way.
        error(std::string("cannot write or start what is asked for: ") + e.what());
    } catch (const std::bad_alloc&) {
        wrong_input(
            "out of memory: the samples, weights or workers that are asked for are too many for this machine; "
            "`rubato check` tells how many they are");
    } catch (const std::exception& e) {
        error(std::string("internal error: ") + e.what());
        return exit_internal;
    }
    return exit_wrong_input;
}

}  // namespace rubato::cli
