// What is left out of SimGrid for speed changes no date: links that can never be the narrowest, and the parts of its
// rounds that concern other models.
#include "sim/network_fixture.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace rubato;
using namespace rubato::tests;

namespace {

/// Sets how SimGrid's time moves on, for networks opened meanwhile.
class Rounds {
public:
    explicit Rounds(const char* whose) { ::setenv("RUBATO_SIMGRID_ROUNDS", whose, 1); }
    ~Rounds() { ::unsetenv("RUBATO_SIMGRID_ROUNDS"); }
    Rounds(const Rounds&) = delete;
    Rounds& operator=(const Rounds&) = delete;
};

/// Gradients to the server (host 0) and models back, of many sizes, a few at once and some at one instant.
std::vector<RecordingSink::Message> traffic(int workers) {
    std::vector<RecordingSink::Message> messages;
    Time at = 0;
    for (int i = 0; i < 400; ++i) {
        const int worker = 1 + i * 7 % workers;
        const double bytes = 1e5 * (1 + i * 37 % 101);
        if (i % 3 != 0) at += 40000 * (i * 13 % 11);
        messages.push_back(i % 2 == 0 ? RecordingSink::Message{worker, 0, bytes, at}
                                      : RecordingSink::Message{0, worker, bytes, at});
    }
    return messages;
}

Scenario star(double bandwidth, double server_bandwidth) {
    Scenario scenario = scenario_on("", "CM02");
    scenario.cluster.network.star.bandwidth = bandwidth;
    scenario.cluster.network.star.server_bandwidth = server_bandwidth;
    scenario.cluster.network.concurrent_transfers = 500;  // the traffic above keeps to it
    return scenario;
}

std::string arrivals(const Scenario& scenario, bool through_server) {
    const int workers = 12;
    const auto network = sim::open_network({&scenario, workers + 1, through_server});
    REQUIRE(network->hosts().size() == 13);
    CHECK(network->hosts()[12].name == "host-12");
    RecordingSink sink(*network, traffic(workers));
    CHECK(sink.run().size() == 400);
    return sink.text();
}

}  // namespace

TEST_CASE("links that are never the narrowest change no arrival") {
    const struct {
        const char* what;
        double worker, server;
    } stars[] = {
        {"all links alike: the workers' are left out", 1e9, 0},
        {"a server with a narrower link: the same", 1e9, 3e8},
        {"a server with a link for all flows at once: its own is left out", 1e8, 5e10},
        {"in between both stay", 1e8, 4e8},
    };
    for (const auto& [what, worker, server] : stars) {
        CAPTURE(what);
        const Scenario scenario = star(worker, server);
        CHECK(arrivals(scenario, true) == arrivals(scenario, false));
    }
    // The traffic tells these stars apart, so that equal texts above mean something.
    CHECK(arrivals(star(1e8, 4e8), false) != arrivals(star(1e8, 5e10), false));
    CHECK(arrivals(star(1e9, 3e8), false) != arrivals(star(1e9, 0), false));
}

TEST_CASE("the latency of a route stays that of both links") {
    Scenario scenario = star(1e9, 0);
    scenario.cluster.network.star.latency = 25e-6;
    for (const bool through_server : {false, true}) {
        const auto network = sim::open_network({&scenario, 4, through_server});
        CHECK(network->route(3, 0) == std::pair{1e9, 50e-6});
        CHECK(network->route(0, 3) == std::pair{1e9, 50e-6});
        CHECK(network->control_delay(2, 0, 1000) == 51000);
    }
}

TEST_CASE("our rounds and SimGrid's give the same dates") {
    for (const double server_bandwidth : {0.0, 4e8}) {
        for (const char* model : {"CM02", "LV08", "CM02+gamma"}) {
            Scenario scenario = scenario_on("", model);
            scenario.cluster.network.star.bandwidth = 1e8;
            scenario.cluster.network.star.server_bandwidth = server_bandwidth;
            std::string ours = arrivals(scenario, false);
            const Rounds engine("engine");
            CHECK(ours == arrivals(scenario, false));
        }
    }
}
