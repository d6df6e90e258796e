// What a kill and a full disk leave behind. Each run is a process of its own.
#include "trace/recorder.hpp"
#include "trace/replay.hpp"
#include "trace/support.hpp"
#include "trace/tables.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace rubato;
using namespace rubato::trace;
using namespace rubato::trace_test;

namespace {

Scenario scenario_with_events() {
    Scenario scenario = small_scenario();
    scenario.trace.events = true;
    return scenario;
}

RecorderOptions options(const std::string& directory) {
    RecorderOptions out;
    out.directory = directory;
    out.scenario_json = "{}\n";
    out.samples = 100;
    return out;
}

/// Steps one role until `count` events have come.
void run(Recorder& recorder, std::int64_t count) {
    Echo role;
    Actions actions;
    Event event = Delivered{};
    for (std::int64_t i = 0; i < count; ++i) {
        actions.clear();
        step(role, i, event, actions);
        recorder.step(i, 0, event, actions);
    }
}

/// Runs `body` in a child process, which never returns from it; gives the child's id.
template <class Body>
pid_t spawn(Body&& body) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        int code = 1;
        try {
            code = body();
        } catch (...) {
        }
        ::_exit(code);
    }
    return child;
}

void wait_for_size(const std::string& path, std::size_t bytes) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::error_code error;
    while (std::filesystem::file_size(path, error) < bytes || error) {
        REQUIRE(std::chrono::steady_clock::now() < deadline);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

/// Every line but a broken last one is whole; `seq` counts from 1 without gaps.
void check_gradients(const std::string& text) {
    auto lines = lines_of(text);
    REQUIRE_FALSE(lines.empty());
    if (text.back() != '\n') lines.pop_back();
    if (lines.empty()) return;
    CHECK(lines[0] == gradients_header);
    for (std::size_t i = 1; i < lines.size(); ++i) {
        REQUIRE(std::count(lines[i].begin(), lines[i].end(), ',') == 16);
        REQUIRE(lines[i].starts_with(std::to_string(i) + ","));
    }
}

}  // namespace

TEST_CASE("kill -9 at any moment breaks at most the last line") {
    Randomizer random(11);
    std::size_t bytes = 0;
    for (int round = 0; round < 25; ++round) {
        const TemporaryDirectory directory;
        const pid_t child = spawn([&] {
            Recorder recorder(scenario_with_events(), options(directory.path()));
            run(recorder, 1'000'000'000);
            return 0;
        });
        // In some rounds while the files are begun, in others well on the way, however slow the machine is today.
        if (round % 5 != 0) wait_for_size(directory.path("gradients.csv"), random.bits() % 200'000);
        std::this_thread::sleep_for(std::chrono::microseconds(random.bits() % 3'000));
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        CHECK_FALSE(exists(directory.path("summary.json")));
        const std::string gradients = read_file(directory.path("gradients.csv"));
        bytes += gradients.size();
        if (!gradients.empty()) check_gradients(gradients);
        std::ifstream log(directory.path("events.log"));
        const ReplayResult result = replay_roles(
            log, std::vector<Echo>(1), +[](RoleId) { return std::string("server"); });
        CHECK(result.difference == "");
        CHECK_FALSE(result.complete);
    }
    CHECK(bytes > 100'000);  // some of them did get somewhere
}

TEST_CASE("a disk that fills up during the run ends it with one line and a summary that says so") {
    const TemporaryDirectory directory;
    const pid_t child = spawn([&] {
        // A file size limit stands for the disk: the error comes from write(2) in the middle of the run alike.
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{100'000, 100'000};
        if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
        Recorder recorder(scenario_with_events(), options(directory.path()));
        try {
            run(recorder, 1'000'000'000);
        } catch (const OutputError& error) {
            const std::string what = error.what();
            if (!what.starts_with("cannot write " + directory.path())) return 3;
            DriverReport report;
            report.status = Status::disk_full;
            report.detail = what;
            return recorder.finish(report).find("\"disk_full\"") == std::string::npos ? 4 : 0;
        }
        return 5;
    });
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(read_file(directory.path("summary.json")).find("\"disk_full\"") != std::string::npos);
    check_gradients(read_file(directory.path("gradients.csv")));
}
