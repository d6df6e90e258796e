// Checkpoint files: what comes back, what is refused, and what a kill in the middle of a save leaves.
#include "trace/checkpoint_writer.hpp"
#include "trace/event_log.hpp"
#include "trace/event_log_writer.hpp"
#include "trace/figures.hpp"
#include "trace/line_file.hpp"
#include "trace/support.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace rubato;
using namespace rubato::trace;
using namespace rubato::trace_test;

namespace {

RunState some_roles(Version version) {
    RunState roles;
    auto& server = roles.server;
    server.now_ns = 123456789;
    server.version = version;
    server.loss_sum = 0.1 + 0.2;
    server.mean_staleness = -1.5;
    server.policy = NSoftsync(3);
    server.dealer.own = {{1, 20}, {2, 0}};
    server.begun = {4, 5};
    server.again = {{0, {1, 10, 30}}, {1, {1, 7, 40}}, {1, {2, 10, 0}}};
    PendingEvaluation pending;
    pending.id = 9;
    pending.row.version = version - 1;
    pending.row.train_loss = 0.7;
    server.evaluations = {pending};
    roles.books.resize(2);
    roles.books[1].worker = 1;
    roles.books[1].compute_ns = 77;
    return roles;
}

struct Content {
    std::vector<float> weights, velocity, old;
    explicit Content(std::size_t size) : weights(size), velocity(size, 0.25f), old(size, -1.0f) {
        for (std::size_t i = 0; i < size; ++i) weights[i] = static_cast<float>(i) * 0.5f;
    }
    CheckpointView view(Version version) const {
        CheckpointView out;
        out.head.program = "1.2.3";
        out.head.backend = "sim";
        out.head.scenario = "{\n  \"a\": \"b c\"\n}\n";
        out.head.roles = some_roles(version);
        out.head.totals.server.pushes = 12;
        out.head.recorder = {{10, 20, 30, -1}, "outcomes{}"};
        out.weights = weights;
        out.velocity = velocity;
        out.evaluated = {{version - 1, old}};
        return out;
    }
};

std::vector<std::string> refused_lines;

std::optional<Checkpoint> newest(const std::string& directory) {
    refused_lines.clear();
    return newest_checkpoint(directory, [](const std::string& line) { refused_lines.push_back(line); });
}

void cut(const std::string& path, std::uintmax_t by) {
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - by);
}

void alter(const std::string& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 0x10));
}

}  // namespace

TEST_CASE("a checkpoint comes back as it was") {
    const TemporaryDirectory folder;
    const Content content(1001);
    write_checkpoint(folder.path(), content.view(5));
    const Checkpoint it = read_checkpoint(folder.path(), 5);
    CHECK(it.head.program == "1.2.3");
    CHECK(it.head.backend == "sim");
    CHECK(it.head.scenario == "{   \"a\": \"b c\" } ");
    CHECK(it.head.roles == some_roles(5));
    CHECK(it.head.totals.server.pushes == 12);
    CHECK(it.head.recorder.tables.evals == 30);
    CHECK(it.head.recorder.figures == "outcomes{}");
    CHECK(it.weights == content.weights);
    CHECK(it.velocity == content.velocity);
    CHECK(it.weights_of(4) == content.old);
    CHECK(it.weights_of(5) == content.weights);
    CHECK(run_state_from_text(to_text(it.head.roles)) == some_roles(5));
}

TEST_CASE("whatever byte is altered and wherever it is cut, a checkpoint is refused by name and the one before used") {
    const TemporaryDirectory folder;
    const Content content(40);
    write_checkpoint(folder.path(), content.view(5));
    write_checkpoint(folder.path(), content.view(9));
    const std::string path = folder.path("checkpoints/9.ckpt");
    const std::string whole = read_file(path);
    REQUIRE(newest(folder.path())->head.version() == 9);
    CHECK(refused_lines.empty());
    for (std::size_t at = 0; at < whole.size(); ++at) {
        CAPTURE(at);
        alter(path, static_cast<std::streamoff>(at));
        REQUIRE(newest(folder.path())->head.version() == 5);
        REQUIRE(refused_lines.size() == 1);
        REQUIRE(refused_lines.front().starts_with(path + ": "));
        alter(path, static_cast<std::streamoff>(at));
    }
    for (std::size_t by = 1; by <= whole.size(); by += 13) {
        CAPTURE(by);
        cut(path, by);
        REQUIRE(newest(folder.path())->head.version() == 5);
        REQUIRE(refused_lines.size() == 1);
        REQUIRE(refused_lines.front().find("is cut off") != std::string::npos);
        std::ofstream(path, std::ios::binary) << whole;
    }
    std::ofstream(path, std::ios::app) << "x";
    CHECK(newest(folder.path())->head.version() == 5);
    std::filesystem::remove(folder.path("checkpoints/4.weights"));
    CHECK(!newest(folder.path()));
    REQUIRE(refused_lines.size() == 2);
    CHECK(refused_lines[1].find("4.weights") != std::string::npos);
}

TEST_CASE("the writer keeps the last two checkpoints with the weights that they need, whatever it is given") {
    const TemporaryDirectory folder;
    const Content content(10);
    std::vector<std::string> remarks;
    {
        CheckpointWriter writer(folder.path(), {"p", "local", "{}", {}, {}, {}}, nullptr,
                                [&](const std::string& line) { remarks.push_back(line); });
        for (Version version = 2; version <= 20; version += 2) {
            bool done = false;
            writer.submit(content.view(version), [&done] { done = true; });
            writer.drain();
            REQUIRE(done);
            for (const Version it : checkpoint_versions(folder.path())) {
                CAPTURE(version);
                CAPTURE(it);
                REQUIRE_NOTHROW(read_checkpoint(folder.path(), it));
            }
        }
        CHECK(writer.written() == 10);
    }
    CHECK(checkpoint_versions(folder.path()) == std::vector<Version>{20, 18});
    CHECK(exists(folder.path("checkpoints/19.weights")));
    CHECK(!exists(folder.path("checkpoints/3.weights")));
    CHECK(read_checkpoint(folder.path(), 20).head.backend == "local");
    CHECK(remarks.empty());

    // Going on from 18, what was newer is out of the way and never taken again.
    const Checkpoint from = read_checkpoint(folder.path(), 18);
    CheckpointWriter writer(folder.path(), {"p", "local", "{}", {}, {}, {}}, &from, {});
    CHECK(checkpoint_versions(folder.path()) == std::vector<Version>{18});
    CHECK(exists(folder.path("checkpoints/17.weights")));
    CHECK(!exists(folder.path("checkpoints/19.weights")));  // the run may come to other ones
    writer.submit(content.view(19), {});
    writer.drain();
    CHECK(checkpoint_versions(folder.path()) == std::vector<Version>{19, 18});
}

TEST_CASE("the checkpoint that a log of events begins with stays") {
    const TemporaryDirectory folder;
    const Content content(10);
    write_checkpoint(folder.path(), content.view(4));
    const Checkpoint from = read_checkpoint(folder.path(), 4);
    for (const bool keeps : {true, false}) {
        CheckpointWriter writer(folder.path(), {"p", "local", "{}", {}, {}, {}}, &from, {}, keeps);
        for (const Version version : {6, 8, 10, 12}) {
            writer.submit(content.view(version), {});
            writer.drain();
        }
        const std::vector<Version> newest{12, 10};
        CHECK(checkpoint_versions(folder.path()) == (keeps ? std::vector<Version>{12, 10, 4} : newest));
        CHECK(exists(folder.path("checkpoints/3.weights")) == keeps);
        CHECK(!exists(folder.path("checkpoints/5.weights")));
        if (keeps) CHECK_NOTHROW(read_checkpoint(folder.path(), 4));
    }
}

TEST_CASE("a checkpoint that cannot be written is told, and the run goes on") {
    const TemporaryDirectory folder;
    std::ofstream(folder.path("checkpoints")) << "a file";
    std::vector<std::string> remarks;
    CheckpointWriter writer(folder.path(), {}, nullptr, [&](const std::string& line) { remarks.push_back(line); });
    bool done = false;
    const Content content(10);
    writer.submit(content.view(3), [&done] { done = true; });
    writer.drain();
    CHECK(done);
    REQUIRE(remarks.size() == 1);
    CHECK(remarks.front().find("the run goes on without this checkpoint") != std::string::npos);
}

TEST_CASE("a kill in the middle of a save leaves the last complete checkpoint, twenty times") {
    const TemporaryDirectory folder;
    const Content content(4'000'000);
    Version before = 0;
    int broken_off = 0;
    for (int round = 0; round < 20; ++round) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            for (Version version = before + 1;; ++version) {
                write_checkpoint(folder.path(), content.view(version));
                prune_checkpoints(folder.path(), {version - 1, version - 2});
            }
        }
        // At the first round not before there is one.
        while (round == 0 && checkpoint_versions(folder.path()).empty())
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::this_thread::sleep_for(std::chrono::microseconds(1000 + 7919 * round));
        ::kill(child, SIGKILL);
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        REQUIRE(WIFSIGNALED(status));
        for (const auto& entry : std::filesystem::directory_iterator(folder.path("checkpoints")))
            broken_off += entry.path().extension() == ".part";
        const auto found = newest(folder.path());
        CAPTURE(round);
        REQUIRE(found);
        REQUIRE(refused_lines.empty());
        REQUIRE(found->weights == content.weights);
        REQUIRE(found->head.version() >= before);
        before = found->head.version();
        begin_after(folder.path(), before);
    }
    CHECK(broken_off > 0);  // otherwise the test has tested nothing
    cut(folder.path("checkpoints/" + std::to_string(before) + ".ckpt"), 1000);
    CHECK(newest(folder.path())->head.version() < before);
    REQUIRE(refused_lines.size() == 1);
    CHECK(refused_lines.front().find("1000 bytes are missing") != std::string::npos);
}

TEST_CASE("a log of a run that goes on has the state second, and an altered one shows") {
    const TemporaryDirectory folder;
    const std::string state = to_text(some_roles(5));
    EventLogWriter(folder.path("log"), {}, state).finish();
    std::ifstream log(folder.path("log"));
    CHECK(read_state(log) == state);
    std::string text = read_file(folder.path("log"));
    text.replace(text.find("accepted=0"), 10, "accepted=1");
    std::istringstream altered(text);
    CHECK_THROWS_AS(read_state(altered), std::invalid_argument);
    std::istringstream again(text);
    const auto result = replay(again, {});
    CHECK(!result.same);
    CHECK(result.difference == "line 2: the state that the log begins with was altered");
    EventLogWriter(folder.path("log"), {}).finish();
    std::ifstream plain(folder.path("log"));
    CHECK(read_state(plain).empty());
}

TEST_CASE("figures go on from their text as if nothing had happened") {
    const Scenario scenario = small_scenario();
    Figures whole(scenario, 100), first(scenario, 100);
    Randomizer random(7);
    const auto feed = [&](Figures& figures, std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) {
            Actions actions;
            GradientRow row;
            row.worker = static_cast<WorkerId>(i % 2);
            row.read_version = i - i % 5;
            row.apply_version = i;
            row.samples = 10;
            actions.gradients.push_back(row);
            UpdateRow update;
            update.time_ns = i * 1000 + i % 7;
            update.version = i + 1;
            update.contributors = 1;
            update.mean_staleness = static_cast<double>(i % 5) / 3;
            update.samples = 10;
            actions.updates.push_back(update);
            EvalRow eval;
            eval.train_loss = 1.0 / static_cast<double>(i + 3);
            if (i % 10 == 0) actions.evals.push_back(eval);
            figures.add(actions);
        }
    };
    feed(whole, 0, 2000);
    feed(first, 0, 777);
    Figures second(scenario, 100);
    second.from_text(first.to_text());
    feed(second, 777, 2000);
    CHECK(second.to_text() == whole.to_text());
    CHECK(second.steady.figures().samples_per_s == whole.steady.figures().samples_per_s);
    CHECK(second.staleness.counts() == whole.staleness.counts());
    CHECK_THROWS_AS(second.from_text("outcomes{"), std::invalid_argument);
}

TEST_CASE("a table goes on behind what it had, and a shorter one is refused") {
    const TemporaryDirectory folder;
    const std::string path = folder.path("table.csv");
    std::int64_t size = 0;
    {
        LineFile file(path, "a,b");
        file.append("1,2");
        size = file.size();
        file.append("3,4");
        file.append("5,");
    }
    {
        LineFile file(path, size);
        file.append("6,7");
        CHECK(file.size() == size + 4);
    }
    CHECK(read_file(path) == "a,b\n1,2\n6,7\n");
    CHECK_THROWS_AS(LineFile(path, 1000), OutputError);
    CHECK(read_file(path) == "a,b\n1,2\n6,7\n");
    CHECK_THROWS_AS(LineFile(folder.path("none.csv"), 0), OutputError);
}
