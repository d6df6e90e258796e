// What commands say of a scenario before and during a run.
#include "cli/backends.hpp"
#include "cli/estimate.hpp"
#include "cli/guarantees.hpp"
#include "cli/progress_bar.hpp"
#include "cli/run_directory.hpp"
#include "cli/scratch.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::cli;

TEST_CASE("estimates count slices, rounds and leftovers") {
    const auto of = [](std::vector<std::string> sets, std::int64_t samples) {
        Loaded loaded = read_text(small(), sets);
        loaded.samples = samples;
        return estimate(loaded);
    };
    const Estimate exact =
        of({"workers.count=3", "workers.batch_size=64", "stop.epochs=2", "protocol.name=hardsync"}, 1000);
    CHECK(exact.slices == 16);
    CHECK(exact.last_slice == 40);
    CHECK(exact.gradients == 32.0);
    CHECK(exact.updates == 12.0);  // 6 rounds an epoch: none spans two
    const Estimate soft =
        of({"workers.count=4", "protocol={\"name\":\"n-softsync\",\"n\":2}", "stop={\"gradients\":13}"}, 1000);
    CHECK(soft.per_update == 2);
    CHECK(soft.updates == 7.0);
    CHECK(soft.limited_by == "gradients");
    const Estimate part = of({"stop.epochs=1.5", "workers.batch_size=100"}, 1000);
    CHECK(part.gradients == 15.0);
    CHECK(of({"stop={\"epochs\":9,\"updates\":5}"}, 100000).limited_by == "updates");
    CHECK_FALSE(of({"stop={\"seconds\":5}"}, 1000).gradients.has_value());
}

TEST_CASE("guarantees follow sampling and protocol") {
    Scenario scenario = read_text(small()).scenario;
    CHECK(guarantees(scenario)[0].find("exactly once an epoch") != std::string::npos);
    CHECK(guarantees(scenario)[2].find("(lambda - 1) / 1 = 7") != std::string::npos);
    scenario.data.sampling = Sampling::strided;
    CHECK(guarantees(scenario)[0].find("not an exact pass") != std::string::npos);
    scenario.protocol.name = "hardsync";
    CHECK(guarantees(scenario)[0] == "each sample is used exactly once an epoch");
    CHECK(guarantees(scenario)[2].find("staleness is 0") == 0);
}

TEST_CASE("numbers for people") {
    CHECK(count_text(1281167) == "1,281,167");
    CHECK(count_text(12) == "12");
    CHECK(bytes_text(102228128) == "102.2 MB");
    CHECK(seconds_text(0.0094) == "9.4 ms");
    CHECK(seconds_text(0) == "0 s");
}

TEST_CASE("the progress line") {
    trace::Progress progress;
    progress.fraction = 0.5;
    progress.gradients = 100;
    progress.last_valid_error = 0.125;
    CHECK(progress_line(progress, 10) ==
          "[############............]  50 %  10 gradients/s  10 s left  valid error 12.50 %");
    CHECK(progress_line({}, 0) == "[........................]   0 %");
}

TEST_CASE("a run directory is taken only where it is free") {
    const Scratch scratch;
    const Loaded loaded = read_text(small());
    const std::string folder = (scratch.folder / "run").string();
    CHECK_FALSE(look_into(folder, loaded, "sim", false));
    std::filesystem::create_directories(folder);
    CHECK_FALSE(look_into(folder, loaded, "sim", false));
    scratch.write("run/notes.txt", "mine");
    CHECK_THROWS_WITH(look_into(folder, loaded, "sim", false), doctest::Contains("is not empty; --force"));
    CHECK_FALSE(look_into(folder, loaded, "sim", true));
    scratch.write("run/scenario.json", loaded.resolved_json);
    CHECK_THROWS_WITH(look_into(folder, loaded, "sim", false), doctest::Contains("an unfinished run of this scenario"));
    scratch.write("run/summary.json", "{\"status\": \"finished\", \"backend\": \"sim\"}");
    REQUIRE(look_into(folder, loaded, "sim", false));
    CHECK(look_into(folder, loaded, "sim", false)->status == "finished");
    CHECK_THROWS_WITH(look_into(folder, loaded, "local", false), doctest::Contains("on backend sim"));
    CHECK_THROWS_WITH(look_into(folder, read_text(small(), {"seed=2"}), "sim", false),
                      doctest::Contains("another scenario"));
    scratch.write("run/summary.json", "{\"status\": \"interrupted\", \"backend\": \"sim\"}");
    CHECK_THROWS_WITH(look_into(folder, loaded, "sim", false), doctest::Contains("ended as interrupted"));
    CHECK(default_directory(loaded, "sim") != default_directory(loaded, "local"));
    CHECK(default_directory(loaded, "sim").starts_with("runs/scenario-"));
}

TEST_CASE("backends by name") {
    CHECK_NOTHROW(require_backend("local"));
    CHECK_THROWS_WITH(require_backend("shm"), doctest::Contains("not yet built"));
    CHECK_THROWS_WITH(require_backend("simm"), doctest::Contains("did you mean sim?"));
}
