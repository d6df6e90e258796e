// The flow network held to SimGrid (CM02): random stars and trees with unequal links, random traffic, the same arrivals
// in the same order.
#include "sim/network_fixture.hpp"
#include "support/random.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

using namespace rubato;
using namespace rubato::tests;

namespace {

using Messages = std::vector<RecordingSink::Message>;
using Arrivals = std::vector<RecordingSink::Arrival>;

struct Dice : test::Random {
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
    double between(double low, double high) { return low * std::pow(high / low, uniform()); }
    sim::HostId host(int hosts) { return static_cast<sim::HostId>(below(static_cast<std::size_t>(hosts))); }
};

/// A link's bandwidth and latency as JSON; one in sixteen without latency.
std::string link(Dice& dice) {
    std::ostringstream text;
    text.precision(17);
    text << "\"bandwidth\": " << dice.between(1e8, 1e10)
         << ", \"latency\": " << (dice.below(16) == 0 ? 0.0 : dice.between(1e-6, 1e-3));
    return text.str();
}

std::string star(Dice& dice, int hosts) {
    std::string text = "{\"kind\": \"star\", \"hosts\": [";
    for (int i = 0; i < hosts; ++i)
        text += (i ? ", " : "") + ("{\"name\": \"h" + std::to_string(i)) + "\", " + link(dice) + "}";
    return text + "]}";
}

std::string tree(Dice& dice, int hosts) {
    const int switches = 1 + static_cast<int>(dice.below(8));
    std::string text = "{\"kind\": \"tree\", \"switches\": [{\"name\": \"s0\"}";
    const auto some = [&](int below) { return "\"s" + std::to_string(dice.host(below)) + "\""; };
    for (int i = 1; i < switches; ++i)
        text += ", {\"name\": \"s" + std::to_string(i) + "\", \"under\": " + some(i) + ", " + link(dice) + "}";
    text += "], \"hosts\": [";
    for (int i = 0; i < hosts; ++i)
        text += (i ? ", " : "") + ("{\"name\": \"h" + std::to_string(i)) + "\", \"under\": " + some(switches) + ", " +
                link(dice) + "}";
    return text + "]}";
}

/// Two levels or three with one way between any two hosts; all links are alike.
std::string fat_tree(Dice& dice, int& hosts) {
    const int levels = 2 + dice.host(2);
    std::string down;
    std::string up;
    hosts = 1;
    for (int i = 0; i < levels; ++i) {
        const int nodes = 2 + dice.host(3);
        hosts *= nodes;
        down += (i ? ", " : "") + std::to_string(nodes);
        up += i ? ", 1" : "1";
    }
    return R"({"kind": "fat-tree", "down": [)" + down + R"(], "up": [)" + up + "], " + link(dice) + "}";
}

/// Messages between the first `hubs` hosts and all others, or between any where hubs is 0.
Messages traffic(Dice& dice, int hosts, int hubs, int count) {
    Messages messages;
    double at = 0;
    const double gap = dice.between(1e4, 1e8);
    for (int i = 0; i < count; ++i) {
        if (dice.below(4) != 0) at -= gap * std::log(1 - dice.uniform());
        RecordingSink::Message message{dice.host(hosts), dice.host(hubs == 0 ? hosts : hubs),
                                       std::round(dice.between(1e3, 1e9)), std::llround(at)};
        if (dice.below(2) == 0) std::swap(message.from, message.to);
        if (message.from == message.to) continue;
        if (dice.below(50) == 0) message.bytes = 0;
        messages.push_back(message);
    }
    return messages;
}

/// Arrivals over one model.
Arrivals arrivals(const std::string& platform, const std::string& model, const Messages& messages) {
    Scenario scenario = scenario_on(platform, "CM02");
    scenario.cluster.network.model = model;
    const auto network = sim::open_network({&scenario, 0});
    RecordingSink sink(*network, messages);
    return sink.run();
}

/// Greatest relative difference of the times, beyond a nanosecond; checks the order. Two that come within it may come
/// in either order.
double difference(const Arrivals& ours, const Arrivals& theirs) {
    std::map<std::int64_t, Time> times;
    for (const auto& arrival : ours) times[arrival.token] = arrival.time;
    double greatest = 0;
    Time latest = 0;
    for (const auto& arrival : theirs) {
        const Time time = times.at(arrival.token);
        const auto scale = static_cast<double>(std::max<Time>(arrival.time, 1));
        greatest = std::max(greatest, static_cast<double>(std::abs(time - arrival.time) - 1) / scale);
        // One nanosecond is what SimGrid takes for the same date.
        CHECK(time >= latest - 2 - static_cast<Time>(1e-9 * scale));
        latest = std::max(latest, time);
    }
    return greatest;
}

double compare(const std::string& text, const Messages& messages) {
    const test::TemporaryDirectory directory;
    const std::string path = (directory.path() / "p.json").string();
    std::ofstream(path) << text;
    const Arrivals ours = arrivals(path, "flow", messages);
    const Arrivals theirs = arrivals(path, "simgrid", messages);
    REQUIRE(ours.size() == messages.size());
    REQUIRE(theirs.size() == messages.size());
    CHECK(arrivals(path, "flow", messages) == ours);
    return difference(ours, theirs);
}

}  // namespace

TEST_CASE("random stars and trees: the dates of SimGrid, in its order") {
    double greatest = 0;
    for (std::uint64_t seed = 1; seed <= 700; ++seed) {
        CAPTURE(seed);
        Dice dice{{seed}};
        int hosts = 2 + dice.host(30);
        std::string text;
        if (seed % 7 == 0)
            text = fat_tree(dice, hosts);
        else
            text = seed % 2 == 0 ? star(dice, hosts) : tree(dice, hosts);
        const int hubs = std::min(hosts, dice.host(4));
        CAPTURE(hubs);
        const double found = compare(text, traffic(dice, hosts, hubs, 120));
        CHECK(found < 1e-6);
        greatest = std::max(greatest, found);
    }
    MESSAGE("greatest relative difference: " << greatest);
}
