// The flow network by hand: shares of a link, platforms that it takes and refuses, many networks at once.
#include "sim/network_fixture.hpp"
#include "support/random.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <thread>

using namespace rubato;
using namespace rubato::tests;

namespace {

/// What the file says, in a directory that goes with it.
class PlatformFile {
public:
    explicit PlatformFile(const std::string& text) { std::ofstream(path()) << text; }
    std::string path() const { return (directory_.path() / "p.json").string(); }

private:
    test::TemporaryDirectory directory_;
};

/// Arrivals on a JSON platform as text.
std::string arrivals(const std::string& platform, const std::vector<RecordingSink::Message>& messages) {
    const PlatformFile file(platform);
    const Scenario scenario = scenario_on(file.path(), "flow");
    const auto network = sim::open_network({&scenario, 0});
    RecordingSink sink(*network, messages);
    sink.run();
    return sink.text();
}

std::string refusal(const std::string& platform) {
    const PlatformFile file(platform);
    const Scenario scenario = scenario_on(file.path(), "flow");
    std::string error = platform_error([&] { sim::open_network({&scenario, 0}); });
    if (const auto at = error.find(file.path()); at != std::string::npos) error.replace(at, file.path().size(), "FILE");
    return error;
}

/// 1 GB/s everywhere, 0.1 ms a link.
const std::string even = R"({"kind": "star", "bandwidth": "1GBps", "latency": "100us", "count": 6})";

}  // namespace

TEST_CASE("two flows share a link, and the one that is left has all of it") {
    // From 0.2 ms each has 0.5 GB/s: 1 MB takes 2 ms, when the other has 1 MB left.
    CHECK(arrivals(even, {{1, 0, 1e6, 0}, {2, 0, 2e6, 0}}) == "0 2200000\n1 3200000\n");
    // Directions do not meet.
    CHECK(arrivals(even, {{1, 0, 1e6, 0}, {0, 1, 1e6, 0}}) == "0 1200000\n1 1200000\n");
}

TEST_CASE("a flow that begins late takes its share from then on") {
    // At 1.2 ms the first has 1 MB left, which takes 2 ms; then the other has 1 MB left.
    CHECK(arrivals(even, {{1, 0, 2e6, 0}, {2, 0, 2e6, 1000000}}) == "0 3200000\n1 4200000\n");
}

TEST_CASE("shares go by 1 / latency, and a route without latency counts as a second") {
    const std::string uneven = R"({"kind": "star", "bandwidth": "1GBps", "hosts": [{"name": "s", "latency": "100us"},
        {"name": "near", "latency": "100us"}, {"name": "far", "latency": "1ms"}]})";
    // 11 to 2: from 1.1 ms the near one has 846 MB/s, and 900 kB of its 1.8 MB are through.
    CHECK(arrivals(uneven, {{1, 0, 1.8e6, 0}, {2, 0, 1e6, 0}}) == "0 2163636\n1 3000000\n");
    const std::string none = R"({"kind": "star", "bandwidth": "1GBps", "hosts": [{"name": "s", "latency": 0},
        {"name": "at-once", "latency": 0}, {"name": "far", "latency": "250ms"}]})";
    // 1 to 4 from 0.25 s on.
    CHECK(arrivals(none, {{1, 0, 4.5e8, 0}, {2, 0, 8e8, 0}}) == "0 1250000000\n1 1250000000\n");
}

TEST_CASE("a flow whose own link is narrower than its share is pinned to it") {
    const std::string narrow = R"({"kind": "star", "bandwidth": "1GBps", "latency": 0, "hosts": [{"name": "s"},
        {"name": "thin", "bandwidth": "100MBps"}, {"name": "a"}, {"name": "b"}]})";
    // 100 MB/s, and 450 MB/s for each of the two others.
    CHECK(arrivals(narrow, {{1, 0, 1e8, 0}, {2, 0, 4.5e8, 0}, {3, 0, 9e8, 0}}) ==
          "0 1000000000\n1 1000000000\n2 1450000000\n");
    // Two flows share the thin link; alone, the second has all of it.
    CHECK(arrivals(narrow, {{1, 0, 5e7, 0}, {1, 0, 1e8, 0}, {2, 0, 1.35e9, 0}}) ==
          "0 1000000000\n1 1500000000\n2 1500000000\n");
    // With ten flows on the hub its share is 90.9 MB/s, less than the thin link has.
    std::vector<RecordingSink::Message> many{{1, 0, 1e8, 0}};
    for (int i = 0; i < 10; ++i) many.push_back({2 + i % 2, 0, 1e8, 0});
    CHECK(arrivals(narrow, many).find("0 1100000000\n") != std::string::npos);
}

TEST_CASE("hubs that flows couple: 1 -> 0 and 1 -> 2 share what leaves 1") {
    const std::string star = R"({"kind": "star", "bandwidth": "1GBps", "latency": 0, "count": 5})";
    // Two flows into 0 and one more out of 1: each of the three has 500 MB/s; 3 -> 0 then is alone on 0's link.
    CHECK(arrivals(star, {{1, 0, 5e8, 0}, {1, 2, 5e8, 0}, {3, 0, 1e9, 0}}) ==
          "0 1000000000\n1 1000000000\n2 1500000000\n");
    // The coupling comes while the hub is busy, and goes again.
    CHECK(arrivals(star, {{1, 0, 1e9, 0}, {3, 0, 1e9, 0}, {1, 2, 2.5e8, 500000000}, {4, 0, 2.5e8, 2000000000}}) ==
          "2 1000000000\n0 2000000000\n1 2000000000\n3 2250000000\n");
}

TEST_CASE("flows that begin at one date beside another keep to their own links, over either model") {
    for (const std::string model : {"flow", "CM02"}) {
        CAPTURE(model);
        Scenario scenario = scenario_on("", model);
        scenario.cluster.network.star.bandwidth = 1e9;
        scenario.cluster.network.star.server_bandwidth = 1e10;
        const auto network = sim::open_network({&scenario, 4});
        RecordingSink sink(*network, {{0, 1, 1e9, 0}, {0, 2, 1e8, 1000000}, {0, 3, 1e8, 1000000}});
        sink.run();
        CHECK(sink.text() == "1 101020000\n2 101020000\n0 1000020000\n");
    }
}

TEST_CASE("a tree: hosts of a rack share its uplink, and nothing within the rack") {
    const std::string racks = R"({"kind": "tree", "latency": "100us", "bandwidth": "1GBps",
        "switches": [{"name": "core"}, {"name": "left", "under": "core"}, {"name": "right", "under": "core"}],
        "hosts": [{"name": "server", "under": "core"}, {"name": "l", "count": 2, "under": "left"},
                  {"name": "r", "count": 2, "under": "right"}]})";
    CHECK(arrivals(racks, {{1, 3, 1e6, 0}, {2, 4, 1e6, 0}}) == "0 2400000\n1 2400000\n");
    CHECK(arrivals(racks, {{1, 2, 1e6, 0}, {2, 1, 1e6, 0}}) == "0 1200000\n1 1200000\n");
    const PlatformFile file(racks);
    const Scenario scenario = scenario_on(file.path(), "flow");
    const auto network = sim::open_network({&scenario, 0});
    CHECK(network->hosts()[3].name == "r0");
    CHECK(network->route(1, 4) == std::pair{1e9, 4e-4});
    CHECK(network->route(1, 0) == std::pair{1e9, 1e-4 + 1e-4 + 1e-4});
    CHECK(network->control_delay(1, 2, 1000) == 201000);
    CHECK(network->common_bandwidth({1, 2}, 0) == 1e9);
    CHECK(std::isinf(network->common_bandwidth({1, 0}, 0)));
}

TEST_CASE("a fat tree with one way is a tree") {
    const std::string tree = R"({"kind": "fat-tree", "down": [2, 2], "up": [1, 1], "bandwidth": "1GBps",
        "latency": "100us"})";
    CHECK(arrivals(tree, {{0, 2, 1e6, 0}, {1, 3, 1e6, 0}}) == "0 2400000\n1 2400000\n");
    CHECK(arrivals(tree, {{0, 1, 1e6, 0}, {2, 3, 1e6, 0}}) == "0 1200000\n1 1200000\n");
}

TEST_CASE("what is no tree is refused, with what takes it") {
    const std::string head = "cluster.network.model: \"flow\" takes stars and trees, and FILE is ";
    const std::string tail = "; \"simgrid\" takes it";
    CHECK(refusal(R"({"kind": "torus", "dimensions": [3, 3]})") == head + "a torus" + tail);
    CHECK(refusal(R"({"kind": "full", "count": 3})") == head + "a full graph" + tail);
    CHECK(refusal(R"({"kind": "fat-tree", "down": [2, 2], "up": [1, 2]})") ==
          head + "a fat tree with several ways (\"up\" or \"parallel\" above 1)" + tail);
    Scenario xml = scenario_on(data_file("island.xml"), "flow");
    CHECK(platform_error([&] { sim::open_network({&xml, 0}); }).ends_with("is a file of SimGrid's" + tail));
    Scenario lv08 = scenario_on("", "flow");
    lv08.cluster.network.simgrid = "LV08";
    CHECK(platform_error([&] {
              sim::open_network({&lv08, 3});
          }) ==
          "cluster.network.simgrid is \"LV08\", a model of SimGrid's; cluster.network.model \"flow\" shares links as "
          "\"CM02\" does");
    Scenario gamma = scenario_on("", "flow");
    gamma.cluster.network.tcp_gamma = true;
    CHECK(platform_error([&] {
              sim::open_network({&gamma, 3});
          }) == "cluster.network.tcp_gamma is SimGrid's; cluster.network.model \"flow\" has no TCP window");
}

TEST_CASE("a date that no clock reaches is refused") {
    const PlatformFile file(R"({"kind": "star", "bandwidth": 1e-9, "latency": 0, "count": 2})");
    const Scenario scenario = scenario_on(file.path(), "flow");
    const auto network = sim::open_network({&scenario, 0});
    RecordingSink sink(*network, {{1, 0, 1e9, 0}});
    CHECK(platform_error([&] { sink.run(); }) ==
          "virtual time would pass 285 years: is a bandwidth or latency in the wrong unit?");
}

TEST_CASE("networks in several threads do not see each other, and repeat to the nanosecond") {
    const auto run = [](std::uint64_t seed) {
        Scenario scenario = scenario_on("", "flow");
        scenario.cluster.network.star.bandwidth = 3e8;
        const auto network = sim::open_network({&scenario, 50});
        test::Random random{seed};
        std::vector<RecordingSink::Message> messages;
        for (int i = 0; i < 2000; ++i)
            messages.push_back({static_cast<sim::HostId>(random.below(50)), static_cast<sim::HostId>(random.below(3)),
                                1e3 * static_cast<double>(1 + random.below(2000)), 150000 * i});
        RecordingSink sink(*network, messages);
        sink.run();
        return sink.text();
    };
    const auto alone = std::array{run(1), run(2), run(3)};
    CHECK(alone[0] != alone[1]);
    std::array<std::string, 3> together;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 3; ++i) threads.emplace_back([&, i] { together[i] = run(i + 1); });
    for (auto& thread : threads) thread.join();
    CHECK(together == alone);
}

TEST_CASE("the promise that all goes through host 0 changes no arrival") {
    const auto run = [](bool through_server, double bandwidth, double server_bandwidth) {
        Scenario scenario = scenario_on("", "flow");
        scenario.cluster.network.star.bandwidth = bandwidth;
        scenario.cluster.network.star.server_bandwidth = server_bandwidth;
        const auto network = sim::open_network({&scenario, 40, through_server});
        test::Random random{5};
        std::vector<RecordingSink::Message> messages;
        for (int i = 0; i < 3000; ++i) {
            const auto worker = static_cast<sim::HostId>(1 + random.below(39));
            const bool push = random.below(2) == 0;
            messages.push_back({push ? worker : 0, push ? 0 : worker, 1e3 * static_cast<double>(1 + random.below(999)),
                                static_cast<Time>(400000 * (i / 3))});
        }
        RecordingSink sink(*network, messages);
        sink.run();
        return sink.text();
    };
    for (const double server : {0.0, 2e8, 3e9}) CHECK(run(true, 1e9, server) == run(false, 1e9, server));
    CHECK(run(true, 1e9, 0) != run(true, 1e8, 1e9));
}
