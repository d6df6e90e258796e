// The small parts of sweeps: statistics, cells, conditions, locks, ranks.
#include "cli/scratch.hpp"
#include "cli/sweep/claims.hpp"
#include "cli/sweep/condition.hpp"
#include "cli/sweep/csv.hpp"
#include "cli/sweep/plan.hpp"
#include "cli/sweep/ranks.hpp"
#include "cli/sweep/report.hpp"
#include "cli/sweep/statistics.hpp"
#include "cli/sweep/sweep_directory.hpp"

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>

using namespace rubato;
using namespace rubato::cli;

TEST_CASE("quantiles of Student's t") {
    // 97.5 % by degrees of freedom, from scipy.stats.t.ppf.
    const std::pair<double, double> known[] = {
        {1, 12.706204736174694}, {2, 4.302652729749462},  {3, 3.182446305283708},  {4, 2.7764451051977934},
        {5, 2.5705818356363146}, {9, 2.262157162798205},  {29, 2.045229642132703}, {49, 2.0095752371292397},
        {99, 1.984216951508337}, {999, 1.96234146113346}, {1e6, 1.959966354568494}};
    for (const auto& [degrees, t] : known) {
        CAPTURE(degrees);
        CHECK(student_quantile(0.975, degrees) == doctest::Approx(t).epsilon(1e-9));
    }
    CHECK(student_quantile(0.75, 1) == doctest::Approx(1).epsilon(1e-12));
    CHECK(student_quantile(0.995, 10) == doctest::Approx(3.169272672616951).epsilon(1e-9));
}

TEST_CASE("mean, median, deviation and interval") {
    const Statistics one = statistics({3});
    CHECK(one.mean == 3);
    CHECK(one.median == 3);
    CHECK(std::isnan(one.std));
    CHECK(std::isnan(one.ci95));
    const Statistics four = statistics({4, 1, 2, 9});
    CHECK(four.mean == 4);
    CHECK(four.median == 3);
    CHECK(four.std == doctest::Approx(std::sqrt(38.0 / 3)));
    CHECK(four.ci95 == doctest::Approx(3.182446305 * std::sqrt(38.0 / 3) / 2));
    for (const double value : {5.0, 0.1, 1e-9 / 3}) {
        for (const std::size_t n : {2, 3, 7, 10}) {
            const Statistics equal = statistics(std::vector<double>(n, value));
            CHECK(equal.mean == value);
            CHECK(equal.std == 0);
            CHECK(equal.ci95 == 0);
        }
    }
}

TEST_CASE("cells are quoted, and read back") {
    std::vector<std::string> cells;
    for (const std::string text : {"", "a", "a,b", "\"", "say \"a,b\"", ",", "ä"}) {
        CAPTURE(text);
        CHECK(split_csv("x," + csv_cell(text) + ",y", cells));
        CHECK(cells == std::vector<std::string>{"x", text, "y"});
    }
    CHECK(csv_cell("a\nb") == "\"a b\"");
    CHECK_FALSE(split_csv("a,\"b", cells));
    CHECK(split_csv("", cells));
    CHECK(cells.size() == 1);
    Node object = Node::object();
    object.set("name", Node::of(std::string("x")), {});
    object.set("comment", Node::of(std::string("y")), {});
    object.set("n", Node::of(0.5), {});
    CHECK(cell_text(&object) == R"({"name":"x","n":0.5})");
    CHECK(cell_text(nullptr).empty());
}

TEST_CASE("conditions over keys") {
    const Node tree = read_text(small("\"optimizer\": {\"staleness_rule\": \"inverse-n\"}")).tree;
    const auto holds = [&](const std::string& text) { return Condition(text, {}).holds(tree); };
    CHECK(holds("workers.count * workers.batch_size == 256"));
    CHECK_FALSE(holds("workers.count*workers.batch_size<256"));
    CHECK(holds("protocol.name == \"async\" && optimizer.staleness_rule != \"none\""));
    CHECK_FALSE(holds("protocol.name == \"hardsync\""));
    CHECK(holds("trace.updates"));
    // What a scenario lacks compares false.
    CHECK_FALSE(holds("protocol.n <= 8"));
    CHECK_FALSE(holds("protocol.n"));
    CHECK(holds("protocol.name != \"n-softsync\" || protocol.n <= 8"));
    for (const char* text : {"workers.count =", "workers.count = 8", "(1", "\"a", "workers count", "", "1, 1"})
        CHECK_THROWS_AS(Condition(text, {}), InputError);
    // Texts are equal or not, and nothing else.
    CHECK_FALSE(holds("protocol.name == 3"));
    CHECK(holds("\"a\" != \"b\" && protocol.name != 3"));
    for (const char* text : {"protocol.name", "\"abc\"", "protocol.name > 3", "\"a\" < \"b\"",
                             "workers.count < protocol.name", "protocol.name - 1"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(holds(text), InputError);
    }
    Condition object("protocol == 3", {});
    object.holds(tree);
    CHECK_THROWS_AS(object.check_keys(), InputError);
    Condition misspelt("workers.cuont > 1", {});
    misspelt.holds(tree);
    CHECK_THROWS_WITH_AS(misspelt.check_keys(),
                         "where: \"workers.cuont > 1\": \"workers.cuont\" is no key of a scenario; did you mean "
                         "workers.count?",
                         InputError);
}

namespace {

struct Planned {
    Scratch scratch;
    SweepFile sweep;
    Resolver resolver;
    Plan plan;

    explicit Planned(const std::string& text, const std::vector<std::string>& sets = {})
        : sweep(read(scratch, text, sets)), resolver(sweep), plan(make_plan(sweep, resolver)) {}

    static SweepFile read(const Scratch& scratch, const std::string& text, const std::vector<std::string>& sets) {
        scratch.write("base.json", small());
        return read_sweep(scratch.write("sweep.json", text), sets);
    }
};

}  // namespace

TEST_CASE("settings of a plan") {
    Planned whole(R"({"base": "base.json", "seeds": [1, 2],
        "variants": [{"label": "a", "set": {"protocol": {"name": "hardsync"}}}, {"label": "b"}],
        "axes": {"workers.batch_size": [4, 8, 16], "optimizer.learning_rate": [0.1, 0.2]},
        "where": "workers.batch_size < 16 || optimizer.learning_rate < 0.15"})");
    CHECK(whole.plan.report_points() == 20);
    CHECK(whole.plan.left_out == 2);
    CHECK(whole.plan.settings_of_variant == std::vector<std::size_t>{5, 5});
    // The last axis runs fastest.
    const auto cells = [&](std::size_t i) { return whole.resolver.at({whole.plan.settings[i].setting, -1}).cells; };
    CHECK(cells(0) == std::vector<std::string>{"\"{\"\"name\"\":\"\"hardsync\"\"}\"", "4", "0.1"});
    CHECK(cells(1)[2] == "0.2");
    CHECK(cells(2)[1] == "8");
    CHECK(whole.resolver.describe({7, -1}) == "variant \"b\", optimizer.learning_rate = 0.2, workers.batch_size = 4");
}

TEST_CASE("of two layers the one that names the kind drops what does not go with it") {
    Planned dropped(R"({"base": "base.json", "variants": [
        {"label": "hard", "set": {"protocol.name": "hardsync"}},
        {"label": "soft", "set": {"protocol.name": "n-softsync"}}],
        "axes": {"protocol.n": [1, 2, 4]}})");
    CHECK(dropped.plan.settings_of_variant == std::vector<std::size_t>{1, 3});
    CHECK(dropped.plan.merged == 2);
    CHECK_FALSE(dropped.plan.remarks.empty());
    // Within one layer it is a mistake.
    CHECK_THROWS_AS(Planned(R"({"base": "base.json", "variants": [
        {"label": "hard", "set": {"protocol.name": "hardsync", "protocol.n": 2}}]})"),
                    InputError);
}

TEST_CASE("identities") {
    Planned one(R"({"base": "base.json"})"), same(R"({"base": "base.json", "variants": [{"label": "base",
        "set": {"workers.batch_size": 32.0}}]})"),
        other(R"({"base": "base.json"})", {"workers.batch_size=33"});
    const auto identity = [](Planned& planned, Phase phase, std::int64_t seed) {
        return identity_of(planned.plan.choices[0].content, "base", phase, seed);
    };
    CHECK(identity(one, Phase::report, 1) == identity(same, Phase::report, 1));
    CHECK(identity(one, Phase::report, 1) != identity(other, Phase::report, 1));
    CHECK(identity(one, Phase::report, 1) != identity(one, Phase::report, 2));
    CHECK(identity(one, Phase::report, 1) != identity(one, Phase::tune, 1));
    CHECK(identity_of(1, "a", Phase::report, 1) != identity_of(1, "b", Phase::report, 1));
    CHECK(identity_text(0xab).size() == 16);
}

TEST_CASE("a point is one process's until that one ends") {
    const Scratch scratch;
    Claims claims(scratch.folder.string());
    REQUIRE(claims.take(7));
    // Another process, which leaves with what it has.
    const auto elsewhere = [&](std::uint64_t point) {
        const pid_t child = ::fork();
        if (child == 0) {
            Claims theirs(scratch.folder.string());
            ::_exit(theirs.take(point) ? 1 : 0);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WEXITSTATUS(status) == 1;
    };
    CHECK_FALSE(elsewhere(7));
    CHECK(elsewhere(8));
    CHECK(claims.take(8));
    claims.release(7);
    CHECK(elsewhere(7));
    CHECK(elsewhere(~std::uint64_t{0}));
}

TEST_CASE("ranks by their environment") {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID",
                             "SLURM_STEP_NUM_TASKS"})
        ::unsetenv(name);
    CHECK(find_rank().count == 1);
    ::setenv("SLURM_PROCID", "0", 1);  // a batch script
    CHECK(find_rank().count == 1);
    ::setenv("SLURM_STEP_NUM_TASKS", "4", 1);
    CHECK(find_rank().count == 4);
    ::setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    ::setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
    CHECK(find_rank().number == 2);
    CHECK(find_rank().count == 3);
    ::setenv("OMPI_COMM_WORLD_SIZE", "x", 1);
    CHECK(find_rank().count == 4);
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})
        ::unsetenv(name);
}

TEST_CASE("the progress line of a sweep") {
    CHECK(sweep_progress_line(500, 2, 2, 1000, 250) ==
          "[############............] 500 of 1,000 done  2 failed  2 running  250 points/s  2 s left");
    CHECK(sweep_progress_line(0, 0, 2, 10, 0) == "[........................] 0 of 10 done  0 failed  2 running");
}

TEST_CASE("processes that enter the folder of one sweep at once all find it theirs") {
    const Planned planned(R"({"base": "base.json"})");
    constexpr int processes = 2, rounds = 2000;
    void* page = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    auto& arrived = *new (page) std::atomic<int>(0);
    for (int process = 0; process < processes; ++process) {
        if (::fork() != 0) continue;
        int refused = 0;
        for (int round = 0; round < rounds; ++round) {
            ++arrived;
            while (arrived < processes * (round + 1)) continue;
            // Each a little later than the one before it, by another time in each round.
            const auto begin = std::chrono::steady_clock::now();
            while (std::chrono::steady_clock::now() - begin < std::chrono::nanoseconds(200 * process * (round % 200)))
                continue;
            try {
                enter_sweep_directory((planned.scratch.folder / std::to_string(round)).string(), planned.sweep);
            } catch (const InputError&) {
                ++refused;
            }
        }
        ::_exit(std::min(refused, 255));
    }
    for (int process = 0; process < processes; ++process) {
        int status = 0;
        REQUIRE(::wait(&status) > 0);
        REQUIRE(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    ::munmap(page, sizeof(std::atomic<int>));
}
