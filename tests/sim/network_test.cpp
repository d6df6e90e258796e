// What every network promises the driver: clock, alarm, stop, repeatability.
#include "sim/network_fixture.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <limits>

using namespace rubato;
using namespace rubato::tests;

namespace {

std::unique_ptr<sim::Network> open_star(int hosts, const std::string& model = "CM02") {
    const Scenario scenario = scenario_on("", model);
    return sim::open_network({&scenario, hosts});
}

/// What both models promise.
void for_each_model(const std::function<void(const std::string&)>& check) {
    for (const std::string model : {"CM02", "flow"}) {
        CAPTURE(model);
        check(model);
    }
}

/// Does what the test says.
struct Callbacks : sim::NetworkSink {
    std::function<void()> alarm = [] { FAIL("no alarm expected"); };
    std::function<void(std::int64_t, bool)> arrival = [](std::int64_t, bool) { FAIL("no arrival expected"); };
    void on_alarm() override { alarm(); }
    void on_transfer(std::int64_t token, bool ok) override { arrival(token, ok); }
};

}  // namespace

TEST_CASE("the alarm rings at its nanosecond, and a later call replaces it") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(2, model);
        CHECK(network->now() == 0);
        Callbacks sink;
        std::vector<Time> rung;
        sink.alarm = [&] {
            rung.push_back(network->now());
            if (rung.size() == 1) network->at(1234567890123457);
            if (rung.size() == 2) network->at(5);  // in the past: now
        };
        network->at(1000);
        network->at(7);
        network->run(sink);
        CHECK(rung == std::vector<Time>{7, 1234567890123457, 1234567890123457});
    });
}

TEST_CASE("a time is reached at once only where nothing of the network's own comes before") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(2, model);
        Callbacks sink;
        std::string log;
        const auto say = [&](const std::string& what) { log += what + " " + std::to_string(network->now()) + "\n"; };
        // A network that cannot tell sets the alarm instead.
        const auto reach = [&](Time when) { network->reach(when) ? say("reached") : void(); };
        sink.alarm = [&] { say(model == "flow" && log.empty() ? "alarm" : "reached"); };
        sink.arrival = [&](std::int64_t token, bool) {
            say("arrival");
            if (token == 1) network->transfer(1, 0, 0, 2);  // arrives at 40000
            reach(45000);
        };
        network->transfer(1, 0, 0, 1);  // arrives at 20000
        CHECK(!network->reach(20000));  // the arrival may be first, or cause something first
        network->run(sink);
        const std::string first = model == "flow" ? "alarm 20000\n" : "reached 20000\n";
        CHECK(log == first + "arrival 20000\narrival 40000\nreached 45000\n");
    });
}

TEST_CASE("a run without alarm and transfer ends at once") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(2, model);
        Callbacks sink;
        network->run(sink);
        CHECK(network->now() == 0);
    });
}

TEST_CASE("stop ends a run, whatever is still moving") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(40, model);
        Callbacks sink;
        int rung = 0;
        sink.alarm = [&] {
            ++rung;
            network->at(2000000);
            network->stop();
            network->at(3000000);
            network->transfer(1, 0, 1e6, 0);
        };
        for (int host = 1; host < 40; ++host) network->transfer(host, 0, 1e9, host);
        network->at(1000000);
        network->run(sink);
        CHECK(rung == 1);
        CHECK(network->now() == 1000000);
    });
}

TEST_CASE("stop in the callback of a transfer, with others at the same instant") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(5, model);
        Callbacks sink;
        int arrived = 0;
        sink.arrival = [&](std::int64_t, bool) {
            ++arrived;
            network->stop();
        };
        for (int host = 1; host < 5; ++host) network->transfer(host, 0, 1e6, host);
        network->run(sink);
        CHECK(arrived == 1);
    });
}

TEST_CASE("an exception of the driver comes out of run") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(2, model);
        Callbacks sink;
        sink.arrival = [](std::int64_t, bool) { throw std::runtime_error("from the driver"); };
        network->transfer(1, 0, 1e6, 1);
        CHECK_THROWS_WITH(network->run(sink), "from the driver");
    });
}

TEST_CASE("a network may go while something moves on it") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(3, model);
        network->transfer(1, 0, 1e6, 1);
        network->at(5);
    });
}

TEST_CASE("one network at a time, and one after another") {
    auto first = open_star(2);
    CHECK(platform_error([] { open_star(2); }) ==
          "SimGrid simulates one network at a time in a process, and one is open");
    first.reset();
    CHECK(open_star(2)->hosts().size() == 2);
}

TEST_CASE("runs of one process repeat to the nanosecond, whatever ran before") {
    const auto run = [](const std::string& model) {
        const auto network = open_star(21, model);
        std::vector<RecordingSink::Message> messages;
        for (int i = 0; i < 200; ++i) messages.push_back({1 + i % 20, 0, 1e5 * (1 + i % 7), 12345 * i});
        RecordingSink sink(*network, messages);
        return sink.run();
    };
    const auto first = run("CM02");
    CHECK(first.size() == 200);
    const auto other = run("LV08");
    CHECK(first == run("CM02"));
    CHECK(other == run("LV08"));
    CHECK(first != other);
}

// The link goes off at 5 ms and comes back at 20 ms. What moves fails at once, and so does what starts meanwhile.
TEST_CASE("transfers over a link that goes off fail") {
    const auto run = [] {
        const Scenario scenario = scenario_on(data_file("failing_link.xml"), "CM02");
        const auto network = sim::open_network({&scenario, 0});
        RecordingSink sink(*network, {{0, 1, 1e6, 0}, {0, 1, 1e6, 10000000}, {0, 1, 1e6, 30000000}});
        sink.run();
        return sink.text();
    };
    CHECK(in_child(run) == "0 failed 5000000\n1 failed 10000000\n2 38050000\n");
}

TEST_CASE("after a platform with profiles a process opens no other") {
    const auto run = [] {
        const Scenario scenario = scenario_on(data_file("failing_link.xml"), "CM02");
        // Looking at it does no harm: the run gets the same one.
        sim::open_network({&scenario, 0});
        auto network = sim::open_network({&scenario, 0});
        RecordingSink(*network, {}).run();
        network.reset();
        return platform_error([] { open_star(2); });
    };
    CHECK(in_child(run) ==
          "a platform with profiles was simulated in this process, and SimGrid keeps their events; start a new process "
          "for the next run");
}

TEST_CASE("a star of ten thousand workers") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(10001, model);
        CHECK(network->hosts().size() == 10001);
        RecordingSink sink(*network, {{10000, 0, 1e6, 0}});
        CHECK(sink.run().size() == 1);
        CHECK(network->route(10000, 0) == std::pair{1.25e9, 2e-5});
    });
}

TEST_CASE("settings that cannot be are named") {
    const auto error = [](const std::function<void(Scenario&)>& change, int hosts = 2) {
        Scenario scenario;
        change(scenario);
        return platform_error([&] { sim::open_network({&scenario, hosts}); });
    };
    CHECK(error([](Scenario& s) { s.cluster.network.model = "ns3"; }) ==
          "unknown network model \"ns3\"; expected \"simgrid\" or \"flow\"");
    CHECK(error([](Scenario& s) { s.cluster.network.simgrid = "SMPI"; }) ==
          "cluster.network.simgrid is \"SMPI\"; expected \"CM02\" or \"LV08\"");
    CHECK(error([](Scenario& s) { s.cluster.network.star.bandwidth = -1; }) ==
          "cluster.network.star.bandwidth is -1; expected a number above zero, in bytes/s");
    CHECK(error([](Scenario& s) { s.cluster.network.star.latency = -1; }) ==
          "cluster.network.star.latency is -1; expected seconds, at least zero");
    CHECK(error([](Scenario&) {}, 0) == "an inline star needs at least one host, got 0");
    CHECK(error([](Scenario&) {}) == "");
}

TEST_CASE("within a host a message takes no time and no link") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(3, model);
        CHECK(network->route(1, 1) == std::pair{std::numeric_limits<double>::infinity(), 0.0});
        CHECK(network->control_delay(1, 1, 1e6) == 0);
        RecordingSink sink(*network, {{1, 1, 1e9, 0}, {1, 0, 1.25e9, 0}, {1, 1, 1e9, 500}, {0, 0, 0, 500}});
        sink.run();
        CHECK(sink.text() == "0 0\n2 500\n3 500\n1 1000020000\n");
    });
}

TEST_CASE("what comes at one instant: the alarm, then arrivals; of two alike, over the flow network, the first begun") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(6, model);
        Callbacks sink;
        std::string log;
        const auto at = [&] { return " " + std::to_string(network->now()) + "\n"; };
        sink.alarm = [&] { log += "alarm" + at(); };
        sink.arrival = [&](std::int64_t token, bool) {
            log += std::to_string(token) + at();
            // What starts in a callback starts at its date; an alarm at that date still rings.
            if (token == 0) network->transfer(1, 0, 0, 10);
            if (token == 10) network->at(network->now());
        };
        network->transfer(5, 0, 0, 0);
        const int last = model == "flow" ? 4 : 1;
        for (int host = 1; host <= last; ++host) network->transfer(host, 0, 4e6 / last, host);
        network->at(20000);
        network->run(sink);
        std::string wanted = "alarm 20000\n0 20000\n10 40000\nalarm 40000\n";
        for (int host = 1; host <= last; ++host) wanted += std::to_string(host) + " 3220000\n";
        CHECK(log == wanted);
    });
}

TEST_CASE("a transfer of nothing takes its latency") {
    for_each_model([](const std::string& model) {
        const auto network = open_star(3, model);
        RecordingSink sink(*network, {{1, 0, 0, 0}, {2, 0, 1e9, 0}, {1, 0, 0, 1000000}});
        sink.run();
        CHECK(sink.text() == "0 20000\n2 1020000\n1 800020000\n");
    });
}

TEST_CASE("a missing route is an error with names") {
    const Scenario scenario = scenario_on(data_file("island.xml"), "CM02");
    const auto network = sim::open_network({&scenario, 0});
    CHECK(platform_error([&] { network->transfer(0, 2, 1, 1); }) == "no route from host \"A\" to host \"C\"");
    CHECK(platform_error([&] { network->route(2, 0); }) == "no route from host \"C\" to host \"A\"");
}
