#include "trace/figures.hpp"

#include "trace/run_check.hpp"
#include "trace/support.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace rubato;
using namespace rubato::trace;
using rubato::trace_test::small_scenario;

namespace {

constexpr Time second = 1'000'000'000;

GradientRow gradient(WorkerId worker, Version read, Version apply, Outcome outcome = Outcome::applied) {
    GradientRow row;
    row.worker = worker;
    row.read_version = read;
    row.apply_version = apply;
    row.samples = 10;
    row.outcome = outcome;
    return row;
}

EvalRow eval(Time time_ns, Version version, double valid_error) {
    EvalRow row;
    row.time_ns = time_ns;
    row.version = version;
    row.samples = version * 10;
    row.metrics.valid_error = valid_error;
    return row;
}

}  // namespace

TEST_CASE("percentiles are exact, by nearest rank") {
    Histogram histogram;
    CHECK_FALSE(histogram.percentile(50).has_value());
    CHECK_FALSE(histogram.mean().has_value());
    for (int i = 1; i <= 100; ++i) histogram.add(i);
    CHECK(histogram.percentile(50) == 50);
    CHECK(histogram.percentile(99) == 99);
    CHECK(histogram.percentile(100) == 100);
    CHECK(histogram.percentile(0) == 1);
    CHECK(histogram.mean() == 50.5);
    CHECK(histogram.max() == 100);
    CHECK(histogram.counts().size() == 101);
    CHECK(histogram.counts()[0] == 0);
    CHECK(histogram.counts()[100] == 1);
    histogram.add(-1);
    CHECK(histogram.total() == 100);
}

TEST_CASE("outcomes, staleness and samples add up, in all and by worker") {
    Figures figures(small_scenario(), 100);
    Actions actions;
    actions.gradients = {gradient(0, 0, 0),
                         gradient(1, 0, 1),
                         gradient(1, 0, 5),
                         gradient(0, 1, -1, Outcome::dropped),
                         gradient(0, 1, -1, Outcome::cancelled),
                         gradient(1, 2, 6, Outcome::leftover),
                         gradient(0, 2, -1, Outcome::leftover)};
    figures.add(actions);
    CHECK(figures.outcomes.applied == 3);
    CHECK(figures.outcomes.dropped == 1);
    CHECK(figures.outcomes.cancelled == 1);
    CHECK(figures.outcomes.leftover == 2);
    CHECK(figures.outcomes.started() == 7);
    CHECK(figures.staleness.counts() == std::vector<std::int64_t>{1, 1, 0, 0, 0, 1});
    // Three applied and one left over that the server had accepted for version 6.
    CHECK(figures.samples == 40);
    CHECK(figures.epochs() == doctest::Approx(0.4));
    CHECK(figures.workers()[0].outcomes.started() == 4);
    CHECK(figures.workers()[1].outcomes.applied == 2);
    CHECK(figures.workers()[1].staleness.mean() == 3);
}

TEST_CASE("the steady window leaves out the first tenth and the last twentieth") {
    SteadyWindow window;
    Time now = 0;
    for (int i = 1; i <= 20; ++i) {
        const bool steady = i > 2 && i <= 19;
        now += steady ? second : 7 * second;
        window.add({now, i, 0, 1, steady ? 3.0 : 100.0, 10});
    }
    const SteadyFigures figures = window.figures();
    CHECK(figures.staleness_mean == 3);
    CHECK(*figures.samples_per_s == doctest::Approx(10));
    CHECK(*figures.samples_per_s_ci95 == doctest::Approx(0));
}

TEST_CASE("the confidence interval is Student's over ten batches") {
    SteadyWindow window;
    Time now = 0;
    for (int i = 0; i < 200; ++i) {
        const int batch = (i - 20) / 17;  // the window holds the updates 21 to 190: ten batches of 17
        now += second / 10 * (1 + (batch & 1));
        window.add({now, i + 1, 0, 2, i % 2 ? 1.0 : 2.0, 10});
    }
    const SteadyFigures figures = window.figures();
    CHECK(*figures.staleness_mean == doctest::Approx(1.5));
    CHECK(*figures.samples_per_s == doctest::Approx(1700 / 25.5));
    // Rates of 100 and 50, five each: standard deviation sqrt(10 * 25^2 / 9).
    CHECK(*figures.samples_per_s_ci95 == doctest::Approx(2.262157 * std::sqrt(6250.0 / 9) / std::sqrt(10.0)));
}

TEST_CASE("short and timeless runs have no steady figures") {
    SteadyWindow window;
    CHECK_FALSE(window.figures().samples_per_s.has_value());
    for (int i = 1; i <= 5; ++i) window.add({i * second, i, 0, 1, 1, 10});
    CHECK(window.figures().samples_per_s.has_value());
    CHECK_FALSE(window.figures().samples_per_s_ci95.has_value());
    SteadyWindow timeless;
    for (int i = 1; i <= 100; ++i) timeless.add({0, i, 0, 1, 1, 10});
    CHECK_FALSE(timeless.figures().samples_per_s.has_value());
    CHECK(timeless.figures().staleness_mean == 1);
}

TEST_CASE("a million updates keep the window within its promise") {
    SteadyWindow window;
    for (std::int64_t i = 1; i <= 1'000'000; ++i) window.add({i * 1000, i, 0, 1, i <= 100'000 ? 1.0 : 2.0, 10});
    CHECK(*window.figures().samples_per_s == doctest::Approx(1e7));
    CHECK(*window.figures().staleness_mean == doctest::Approx(2).epsilon(1e-4));
}

TEST_CASE("the target counts from the first row that reaches it") {
    Scenario scenario = small_scenario();
    scenario.stop.target = Target{"valid_error", 0.2};
    Figures figures(scenario, 100);
    Actions actions;
    actions.evals = {eval(1 * second, 1, 0.5), eval(2 * second, 4, 0.2), eval(3 * second, 7, 0.1),
                     eval(4 * second, 9, 0.3)};
    figures.add(actions);
    REQUIRE(figures.target.has_value());
    CHECK(figures.target->time_ns == 2 * second);
    CHECK(figures.target->updates == 4);
    CHECK(figures.target->samples == 40);
    CHECK(figures.best_valid_error == 0.1);
    CHECK(figures.metrics.valid_error == 0.3);
}

TEST_CASE("progress is that of the nearest stop") {
    Scenario scenario = small_scenario();
    scenario.stop.epochs = 1;
    scenario.stop.updates = 100;
    scenario.stop.seconds = 1000;
    Figures figures(scenario, 100);
    CHECK(figures.progress(0).fraction == 0);
    CHECK(figures.progress(0).last_valid_error == -1);
    Actions actions;
    actions.gradients = {gradient(0, 0, 0), gradient(1, 0, 1)};
    actions.updates = {{second, 1, 0, 1, 0, 10}, {2 * second, 2, 0, 1, 1, 10}};
    figures.add(actions);
    CHECK(figures.progress(2 * second).fraction == doctest::Approx(0.2));
    CHECK(figures.progress(900 * second).fraction == doctest::Approx(0.9));
    CHECK(figures.progress(9000 * second).fraction == 1);
    CHECK(figures.progress(2 * second).mean_staleness == 0.5);
    CHECK(figures.progress(2 * second).updates == 2);
}

TEST_CASE("times that do not add up are named") {
    WorkerRow row;
    row.compute_ns = 90;
    row.idle_ns = 10;
    CHECK(check_times(row, 100) == "");
    CHECK(check_times(row, 120) == "worker 0: the times add up to 100 ns, the run took 120 ns");
}
