// The statistics of staleness that Gupta et al. 2015 report (Figure 4, section 5.1) and that follow from the
// conservation law, on the scenario that ships: lambda = 30, 100,000 gradients, a lightly loaded server.
#include "cli/load.hpp"
#include "sim/driver.hpp"
#include "support/checkers.hpp"
#include "support/oracle.hpp"

#include "sim/cost.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::test;

namespace {

struct PaperRun {
    Scenario scenario;
    Ledger ledger;
    trace::DriverReport report;

    /// Staleness of the gradients applied after the first tenth of the updates.
    std::vector<std::int64_t> steady() const {
        const auto warm = static_cast<Version>(ledger.updates.size() / 10);
        std::vector<std::int64_t> values;
        for (const auto& row : ledger.gradients)
            if (row.outcome == Outcome::applied && row.apply_version >= warm) values.push_back(row.staleness());
        return values;
    }
};

PaperRun run_paper(std::vector<std::string> sets) {
    const auto loaded = cli::load_scenario(RUBATO_SCENARIOS "/papers/rudra-staleness.json", sets);
    PaperRun result;
    result.scenario = loaded.scenario;
    sim::RunInput input;
    input.scenario = &result.scenario;
    input.samples = loaded.samples;
    input.parameters = 1;
    StepChecker checker;
    input.observer = [&](Time now, RoleId role, const Event& event, const Actions& actions) {
        checker.see(now, role, event, actions);
        result.ledger.add(actions);
    };
    result.report = sim::Simulation(result.scenario).run(input);
    REQUIRE(result.report.status == Status::finished);
    REQUIRE_NOTHROW(check_books(result.scenario, loaded.samples, result.ledger, checker.started));
    return result;
}

double mean(const std::vector<std::int64_t>& values) {
    double sum = 0;
    for (const auto value : values) sum += static_cast<double>(value);
    return sum / static_cast<double>(values.size());
}

double share_above(const std::vector<std::int64_t>& values, std::int64_t bound) {
    return static_cast<double>(std::count_if(values.begin(), values.end(), [=](auto v) { return v > bound; })) /
           static_cast<double>(values.size());
}

double busy_fraction(const PaperRun& run) {
    const auto& server = run.report.servers.front();
    return static_cast<double>(server.push_ns + server.update_ns + server.pull_ns) /
           static_cast<double>(run.report.end_ns);
}

}  // namespace

TEST_CASE("mean staleness is (lambda - 1) / c within 3 %, and small n keep to 0 .. 2n") {
    for (const int n : {1, 2, 4, 10, 30}) {
        const auto run = run_paper({"protocol.n=" + std::to_string(n)});
        REQUIRE_NOTHROW(check_conservation(run.scenario, run.ledger));
        const auto values = run.steady();
        const double expected = 29.0 / (30 / n);
        CAPTURE(n);
        CHECK(busy_fraction(run) < 0.1);
        CHECK(mean(values) == doctest::Approx(expected).epsilon(0.03));
        if (n <= 2) CHECK(*std::max_element(values.begin(), values.end()) <= 2 * n);
        if (n == 30) CHECK(share_above(values, 60) == 0);
        MESSAGE("n = " << n << ": mean " << mean(values) << ", expected " << expected);
    }
}

TEST_CASE("with noise of CV 0.3 the tail of 30-softsync beyond 2n is between 2e-3 and 1e-2") {
    const auto run = run_paper({"protocol.n=30", "cluster.noise.lognormal_cv=0.3"});
    const auto share = share_above(run.steady(), 60);
    MESSAGE("P(staleness > 60) = " << share);
    CHECK(share > 2e-3);
    CHECK(share < 1e-2);
}

TEST_CASE("hardsync: staleness is exactly 0") {
    const auto run = run_paper({"protocol.name=hardsync", "stop.gradients=30000"});
    for (const auto& row : run.ledger.gradients) REQUIRE((row.outcome != Outcome::applied || row.staleness() == 0));
}

TEST_CASE("the law holds exactly with a loaded server too") {
    const auto light = run_paper({"protocol.n=30", "stop.gradients=20000"});
    const auto loaded = run_paper({"protocol.n=30", "stop.gradients=20000", "cluster.server.push_s=0.004",
                                   "cluster.server.pull_s=0.001", "cluster.server.update_s=0.003"});
    CHECK(busy_fraction(light) < 0.1);
    CHECK(busy_fraction(loaded) > 0.9);
    CHECK(loaded.report.end_ns > light.report.end_ns * 11 / 10);
    REQUIRE_NOTHROW(check_conservation(light.scenario, light.ledger));
    REQUIRE_NOTHROW(check_conservation(loaded.scenario, loaded.ledger));
}

TEST_CASE("the histogram is within KS 0.01 of the naive oracle's, fed with the same durations") {
    for (const int n : {1, 4, 30}) {
        const auto run = run_paper({"protocol.n=" + std::to_string(n)});
        OracleInput input;
        input.lambda = 30;
        input.gradients_per_update = 30 / n;
        input.gradients = 100000;
        input.control_s = 20e-6;
        input.push_s = input.pull_s = 20e-6 + 350e3 / 1.25e9;
        input.compute = [&](int worker, std::int64_t seq) {
            return 0.2 * sim::noise_factor(run.scenario, worker + 1, seq);
        };
        std::vector<std::int64_t> expected;
        const auto warm = static_cast<Version>(run.ledger.updates.size() / 10);
        for (const auto& row : softsync_oracle(input))
            if (row.apply_version >= warm) expected.push_back(row.apply_version - row.read_version);
        const auto distance = ks_distance(run.steady(), expected);
        MESSAGE("n = " << n << ": KS distance " << distance);
        CHECK(distance < 0.01);
    }
}
