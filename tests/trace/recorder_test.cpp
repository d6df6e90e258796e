#include "trace/recorder.hpp"

#include "trace/replay.hpp"
#include "trace/run_check.hpp"
#include "trace/support.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace rubato;
using namespace rubato::trace;
using namespace rubato::trace_test;

namespace {

constexpr Time second = 1'000'000'000;

RecorderOptions options(const std::string& directory) {
    RecorderOptions out;
    out.directory = directory;
    out.scenario_json = "{\"name\": \"small\"}\n";
    out.command = "rubato run small.json";
    out.samples = 100;
    out.places = {{"a", ""}, {"b", "cpu"}, {"c", "cpu"}};
    return out;
}

Actions update(std::int64_t seq, Outcome outcome = Outcome::applied) {
    Actions actions;
    GradientRow row;
    row.seq = seq;
    row.worker = static_cast<WorkerId>(seq % 2);
    row.samples = 10;
    row.outcome = outcome;
    if (outcome == Outcome::applied) {
        row.read_version = row.apply_version = seq;
        actions.updates.push_back({(seq + 1) * second, seq + 1, 0, 1, 0, 10});
    }
    actions.gradients.push_back(row);
    return actions;
}

/// Ten updates, a dropped gradient and the workers' ends.
void feed(Recorder& recorder) {
    for (std::int64_t seq = 0; seq < 10; ++seq) recorder.step(seq * second, 0, Applied{}, update(seq));
    recorder.step(10 * second, 0, Applied{}, update(11, Outcome::dropped));
    for (WorkerId worker = 0; worker < 2; ++worker) {
        Actions actions;
        actions.workers.push_back({worker, 5, 5, 5, 7 * second, 0, second, 0, second, 0, 0, second});
        recorder.step(10 * second, worker + 1, Delivered{}, actions);
    }
}

DriverReport report() {
    DriverReport out;
    out.backend = "sim";
    out.servers.push_back({0, 11, 10, 10, second, second, second, 0, 44, 55});
    return out;
}

}  // namespace

TEST_CASE("a run directory holds what the contract names") {
    const TemporaryDirectory directory;
    const std::string run = directory.path("runs/small");
    Recorder recorder(small_scenario(), options(run));
    CHECK(read_file(run + "/scenario.json") == "{\"name\": \"small\"}\n");
    CHECK(read_file(run + "/command.txt") == "rubato run small.json\n");
    feed(recorder);
    CHECK_FALSE(exists(run + "/summary.json"));
    CHECK(recorder.progress().updates == 10);
    CHECK(recorder.progress().now_ns == 10 * second);
    const std::string text = recorder.finish(report());
    CHECK(read_file(run + "/summary.json") == text);
    CHECK(check_run(run) == "");
    CHECK(lines_of(read_file(run + "/gradients.csv")).size() == 12);
    CHECK(lines_of(read_file(run + "/updates.csv")).size() == 11);
    CHECK(lines_of(read_file(run + "/evals.csv")).size() == 1);
    CHECK(lines_of(read_file(run + "/workers.csv"))[2].starts_with("1,cpu,c,5,5,1,0,0,0,0,7,0,1,0,1,"));
    CHECK(lines_of(read_file(run + "/servers.csv"))[1] == "0,a,11,10,10,1,1,1,0,7,44,55,,");
    CHECK_FALSE(exists(run + "/timeline.csv"));
    CHECK_FALSE(exists(run + "/events.log"));
    CHECK_FALSE(exists(run + "/summary.json.part"));
}

TEST_CASE("times that miss the run are found in the files") {
    const TemporaryDirectory directory;
    Recorder recorder(small_scenario(), options(directory.path()));
    feed(recorder);
    Actions actions;
    actions.workers.push_back({0, 5, 5, 5, 8 * second});
    recorder.step(0, 1, Delivered{}, actions);
    recorder.finish(report());
    CHECK(check_run(directory.path()) == "worker 0: the times add up to 8 s, the run took 10 s");
}

TEST_CASE("thinned and unwanted tables leave the figures alone") {
    const TemporaryDirectory directory;
    Scenario scenario = small_scenario();
    Recorder whole(scenario, options(directory.path("whole")));
    scenario.trace.every = 4;
    scenario.trace.updates = false;
    Recorder thin(scenario, options(directory.path("thin")));
    scenario.trace.gradients = false;
    Recorder none(scenario, options(directory.path("none")));
    Recorder figures_only(scenario, options(""));
    for (Recorder* recorder : {&whole, &thin, &none, &figures_only}) feed(*recorder);
    const auto without_engine = [](const std::string& text) { return text.substr(0, text.find("\"engine\"")); };
    const std::string expected = without_engine(whole.finish(report()));
    CHECK(without_engine(thin.finish(report())) == expected);
    CHECK(without_engine(none.finish(report())) == expected);
    CHECK(without_engine(figures_only.finish(report())) == expected);
    const auto rows = lines_of(read_file(directory.path("thin/gradients.csv")));
    REQUIRE(rows.size() == 5);  // 0, 4, 8 and the dropped one
    CHECK(rows[2].starts_with("4,"));
    CHECK(rows[4].find(",dropped,") != std::string::npos);
    CHECK_FALSE(exists(directory.path("thin/updates.csv")));
    CHECK_FALSE(exists(directory.path("none/gradients.csv")));
}

TEST_CASE("two runs never mix in one directory") {
    const TemporaryDirectory directory;
    Scenario scenario = small_scenario();
    scenario.trace.timeline = scenario.trace.events = true;
    {
        Recorder recorder(scenario, options(directory.path()));
        feed(recorder);
        recorder.finish(report());
    }
    CHECK(exists(directory.path("timeline.csv")));
    const Recorder recorder(small_scenario(), options(directory.path()));
    for (const char* name : {"summary.json", "workers.csv", "servers.csv", "timeline.csv", "events.log"})
        CHECK_FALSE_MESSAGE(exists(directory.path(name)), name);
    CHECK(lines_of(read_file(directory.path("gradients.csv"))).size() == 1);
}

TEST_CASE("rows reach the disk within a second, even when none follows") {
    const TemporaryDirectory directory;
    Recorder recorder(small_scenario(), options(directory.path()));
    recorder.step(0, 0, Applied{}, update(0));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (lines_of(read_file(directory.path("gradients.csv"))).size() < 2) {
        REQUIRE(std::chrono::steady_clock::now() < deadline);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    CHECK(lines_of(read_file(directory.path("updates.csv"))).size() == 2);
}

TEST_CASE("steps, spans and progress may come from several threads") {
    const TemporaryDirectory directory;
    Scenario scenario = small_scenario();
    scenario.trace.timeline = scenario.trace.events = true;
    Recorder recorder(scenario, options(directory.path()));
    REQUIRE(recorder.wants_timeline());
    std::vector<std::thread> threads;
    for (RoleId role = 0; role < 4; ++role)
        threads.emplace_back([&recorder, role] {
            Echo echo{role, 0};
            Actions actions;
            for (Time now = 0; now < 500; ++now) {
                actions.clear();
                const Event event = Taken{now, now};
                step(echo, now, event, actions);
                if (role == 0) actions.gradients = update(now).gradients;
                recorder.step(now, role, event, actions);
                recorder.span({role, "compute", now, now + 1});
                recorder.progress();
            }
        });
    for (auto& thread : threads) thread.join();
    recorder.finish(report());
    CHECK(lines_of(read_file(directory.path("timeline.csv"))).size() == 2001);
    CHECK(lines_of(read_file(directory.path("gradients.csv"))).size() == 501);
    std::ifstream log(directory.path("events.log"));
    // Role 0 above states rows that a fresh Echo does not; the others replay.
    const ReplayResult result = replay_roles(
        log, std::vector<Echo>{{0, 0}, {1, 0}, {2, 0}, {3, 0}}, +[](RoleId role) { return std::to_string(role); });
    CHECK(result.difference.starts_with("0, event taken, line "));
}

TEST_CASE("an output that cannot be written is one line before the run begins") {
    const TemporaryDirectory directory;
    std::filesystem::create_symlink("/dev/full", directory.path("gradients.csv"));
    CHECK_THROWS_AS(Recorder(small_scenario(), options(directory.path())), OutputError);
    std::ofstream(directory.path("file")) << "text";
    CHECK_THROWS_AS(Recorder(small_scenario(), options(directory.path("file"))), OutputError);
}
