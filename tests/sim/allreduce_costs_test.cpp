// Runs allreduces.txt: what each algorithm takes on one switch is derived there by hand.
#include "sim/driver.hpp"
#include "sim/expression.hpp"
#include "support/simulate.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

using namespace rubato;
using namespace rubato::test;

namespace {

constexpr double computation_s = 0.09;

AllreduceAlgorithm algorithm_named(const std::string& name) {
    const std::map<std::string, AllreduceAlgorithm> all = {
        {"ordered", AllreduceAlgorithm::ordered},
        {"ring", AllreduceAlgorithm::ring},
        {"recursive-doubling", AllreduceAlgorithm::recursive_doubling},
        {"rabenseifner", AllreduceAlgorithm::rabenseifner},
        {"tree", AllreduceAlgorithm::tree}};
    REQUIRE(all.contains(name));
    return all.at(name);
}

/// Seconds from the gradients, which all workers have at once, to the last worker's sum of them, on the flow model's
/// star, whose links are shared.
double simulated_s(AllreduceAlgorithm algorithm, int workers, std::int64_t bytes) {
    Scenario scenario = timing_scenario("allreduce", workers, 4, 0);
    scenario.data.sampling = Sampling::strided;
    scenario.protocol.collective.algorithm = scenario.protocol.collective.small = algorithm;
    scenario.cost.push_bytes = scenario.cost.pull_bytes = bytes;
    scenario.cluster.devices["default"].b = computation_s / 4;
    scenario.cluster.network.model = "flow";
    scenario.cluster.network.star.bandwidth = 1e8;
    scenario.cluster.network.star.latency = 25e-6;
    scenario.stop = {};
    scenario.stop.updates = 1;
    sim::RunInput input;
    input.scenario = &scenario;
    input.samples = 100000;
    Time computed_ns = 0, end_ns = 0;
    input.observer = [&](Time, RoleId, const Event&, const Actions& actions) {
        for (const auto& row : actions.iterations) {
            computed_ns = std::max(computed_ns, row.it.computed_ns);
            end_ns = std::max(end_ns, row.it.end_ns);
        }
    };
    REQUIRE(sim::Simulation(scenario).run(input).status == Status::finished);
    REQUIRE(computed_ns == std::llround(computation_s * 1e9));
    return static_cast<double>(end_ns - computed_ns) * 1e-9;
}

}  // namespace

TEST_CASE("collective: allreduces on one switch take what is derived by hand, within 5 %") {
    std::ifstream in(RUBATO_TEST_DATA "/../allreduces.txt");
    REQUIRE(in);
    std::string line, algorithm, word;
    int workers = 0, cases = 0;
    std::int64_t bytes = 0;
    for (int number = 1; std::getline(in, line); ++number) {
        if (line.empty() || line[0] == '#' || line == "----") continue;
        std::istringstream words(line);
        words >> word;
        if (word == "allreduce") {
            words >> algorithm >> workers >> bytes;
            continue;
        }
        const auto equals = line.find('=');
        REQUIRE(equals != std::string::npos);
        const double stated = std::stod(word), derived = tests::evaluate(line.substr(equals + 1));
        const double took = simulated_s(algorithm_named(algorithm), workers, bytes);
        INFO("allreduces.txt:", number, ": ", algorithm, " ", workers, " ", bytes, ", simulated ", took);
        CHECK(std::abs(stated - derived) <= 1e-9 * derived);
        CHECK(std::abs(took - derived) <= 0.05 * derived);
        ++cases;
    }
    CHECK(cases == 80);
}
