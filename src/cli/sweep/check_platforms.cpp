#include "cli/sweep/check_platforms.hpp"

#include "cli/backends.hpp"
#include "cli/log.hpp"
#include "cli/placed.hpp"
#include "sim/network.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>
#include <system_error>

namespace rubato::cli {
namespace {

/// In the child: warnings, a line each, after "w"; or the error after "e".
std::string opened(const Loaded& loaded) {
    try {
        std::string text = "w";
        const auto backend = with_place(loaded, [&] { return open_backend("sim", loaded.scenario); });
        for (const auto& line : backend->warnings()) text += line + "\n";
        return text;
    } catch (const std::exception& error) {
        return std::string("e") + error.what();
    }
}

std::string opened_elsewhere(const Loaded& loaded) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child == 0) {
        const std::string text = opened(loaded);
        const ssize_t written = ::write(ends[1], text.data(), text.size());
        ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    ::close(ends[1]);
    std::string text;
    char block[4096];
    for (ssize_t count; (count = ::read(ends[0], block, sizeof block)) != 0;) {
        if (count < 0 && errno != EINTR) break;
        if (count > 0) text.append(block, static_cast<std::size_t>(count));
    }
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0 || text.empty()) throw sim::PlatformError("the platform cannot be opened: its process died");
    return text;
}

}  // namespace

void check_platforms(const Plan& plan, Resolver& resolver) {
    constexpr std::size_t platforms_max = 32;
    std::set<std::uint64_t> seen;
    std::set<std::string> warnings;
    for (const PlannedSetting& setting : plan.settings) {
        const PlannedChoice& choice = plan.choices[setting.first];
        if (seen.size() == platforms_max) break;
        if (!seen.insert(choice.platform).second) continue;
        const SettingId id{setting.setting, choice.choice};
        const std::string text = opened_elsewhere(resolver.at(id).loaded);
        if (text.front() == 'e') throw sim::PlatformError(text.substr(1) + " (" + resolver.describe(id) + ")");
        for (std::size_t begin = 1; begin < text.size();) {
            const auto end = text.find('\n', begin);
            if (warnings.insert(text.substr(begin, end - begin)).second) warn(text.substr(begin, end - begin));
            begin = end + 1;
        }
    }
}

void load_simgrid(const Plan& plan) {
    const auto is_apart = [](const PlannedChoice& choice) { return choice.apart; };
    if (!plan.simgrid || std::any_of(plan.choices.begin(), plan.choices.end(), is_apart)) return;
    // A star of no further meaning.
    Scenario scenario;
    scenario.cluster.network.model = "simgrid";
    scenario.cluster.network.simgrid = "CM02";
    sim::open_network({&scenario, 2, true});
}

}  // namespace rubato::cli
