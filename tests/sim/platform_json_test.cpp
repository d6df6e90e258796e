#include "sim/platform/platform_json.hpp"

#include "sim/network_fixture.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace rubato;
using namespace rubato::tests;

namespace {

/// A file in a folder of temporary files, which goes with the value.
class JsonFile {
public:
    explicit JsonFile(const std::string& text)
        : path_(std::filesystem::temp_directory_path() / ("rubato-" + std::to_string(getpid()) + ".json")) {
        std::ofstream(path_) << text;
    }
    ~JsonFile() { std::filesystem::remove(path_); }
    JsonFile(const JsonFile&) = delete;
    JsonFile& operator=(const JsonFile&) = delete;
    std::string path() const { return path_.string(); }

private:
    std::filesystem::path path_;
};

std::string error_of(const std::string& text) {
    const JsonFile file(text);
    std::string message = platform_error([&] { sim::read_platform_json(file.path()); });
    if (message.starts_with(file.path() + ": ")) message.erase(0, file.path().size() + 2);
    return message;
}

}  // namespace

TEST_CASE("a star of named hosts, with units") {
    const JsonFile file(R"({"kind": "star", "latency": "10us", "comment": "two generations", "hosts": [
        {"name": "server", "speed": "2Gf", "cores": 8, "bandwidth": "10Gbps", "latency": "50us"},
        {"name": "old-", "count": 2, "speed": "1Gf", "bandwidth": "1Gbps"},
        {"name": "new", "speed": 3e9, "bandwidth": "1GBps"}]})");
    const auto hosts = sim::read_platform_json(file.path()).hosts;
    REQUIRE(hosts.size() == 4);
    CHECK(hosts[0] == sim::StarHost{"server", 2e9, 8, 1.25e9, 50e-6});
    CHECK(hosts[1] == sim::StarHost{"old-0", 1e9, 1, 125e6, 10e-6});
    CHECK(hosts[2].name == "old-1");
    CHECK(hosts[3] == sim::StarHost{"new", 3e9, 1, 1e9, 10e-6});
}

TEST_CASE("the short form: hosts that are all alike") {
    const JsonFile file(R"({"kind": "star", "count": 3, "speed": "1Gf", "bandwidth": "1Gbps", "latency": "50us"})");
    const auto hosts = sim::read_platform_json(file.path()).hosts;
    REQUIRE(hosts.size() == 3);
    CHECK(hosts[2] == sim::StarHost{"host-2", 1e9, 1, 125e6, 50e-6});
}

TEST_CASE("the factor of eight between bits and bytes reaches the network") {
    const auto seconds = [](const std::string& bandwidth) {
        const JsonFile file(R"({"kind": "star", "count": 2, "latency": 0, "bandwidth": ")" + bandwidth + "\"}");
        const Scenario scenario = scenario_on(file.path(), "CM02");
        const auto network = sim::open_network({&scenario, 0});
        RecordingSink sink(*network, {{0, 1, 1e6, 0}});
        return sink.run().at(0).time;
    };
    CHECK(seconds("1Gbps") == 8000000);
    CHECK(seconds("1GBps") == 1000000);
}

TEST_CASE("what is wrong with a file is said with its path") {
    CHECK(
        error_of(R"({"kind": "ring", "count": 2})") ==
        "/kind: is \"ring\"; expected star, tree, full, fat-tree or torus (a SimGrid XML file describes any platform)");
    CHECK(error_of(R"({"kind": "fat_tree", "count": 2})") == "/kind: is \"fat_tree\"; did you mean \"fat-tree\"?");
    CHECK(error_of("[]") == "expected an object with \"kind\": one of star, tree, full, fat-tree or torus");
    CHECK(error_of(R"({"kind": "star"})") == "expected \"hosts\", or \"count\" for hosts that are all alike");
    CHECK(error_of(R"({"kind": "star", "hosts": []})") == "/hosts: is empty; expected at least one host");
    CHECK(error_of(R"({"kind": "star", "hosts": [{"name": "a"}, {"name": "a"}]})") ==
          "/hosts: two hosts are named \"a\"");
    CHECK(error_of(R"({"kind": "star", "hosts": [{"name": "a", "bandwith": "1Gbps"}]})") ==
          "/hosts/0/bandwith: unknown key; did you mean \"bandwidth\"?");
    CHECK(error_of(R"({"kind": "star", "hosts": [{"name": "a", "colour": "red"}]})") ==
          "/hosts/0/colour: unknown key; expected one of name, count, speed, cores, bandwidth, latency and comment");
    CHECK(error_of(R"({"kind": "star", "hosts": [{"speed": "1Gf"}]})").starts_with("/hosts/0: a host without name"));
    CHECK(error_of(R"({"kind": "star", "count": 2, "bandwidth": "1gbps"})")
              .starts_with("/bandwidth: \"1gbps\": unknown unit \"gbps\", did you mean"));
    CHECK(error_of(R"({"kind": "star", "count": 2, "speed": -1})") == "/speed: is -1; expected a value above zero");
    CHECK(error_of(R"({"kind": "star", "count": "2"})") == "/count: is \"2\"; expected a whole number of at least 1");
    CHECK(error_of(R"({"kind": "star", "count": 2, "latency": true})") ==
          "/latency: expected a string with a unit, or a number");
    CHECK(error_of("{\"kind\": \"star\",\n \"count\": 2,}").find(".json:2: not valid JSON") != std::string::npos);
    CHECK(platform_error([] { sim::read_platform_json("/nowhere/p.json"); }) ==
          "/nowhere/p.json: cannot open the platform file");
}

TEST_CASE("a fat tree: its levels, and as many hosts as they make") {
    const auto plan = sim::parse_platform_json(
        R"({"kind": "fat-tree", "down": [4, 3], "up": [1, 2], "parallel": [1, 2], "bandwidth": "25Gbps", "cores": 4,
            "hosts": [{"name": "server", "speed": "2Gf"}, {"name": "w", "count": 11}]})",
        "p.json");
    REQUIRE(plan.hosts.size() == 12);
    CHECK(plan.hosts[0].speed == 2e9);
    CHECK(plan.hosts[11].name == "w10");
    CHECK(plan.hosts[11].cores == 4);
    CHECK(std::get<sim::FatTreeShape>(plan.shape) == sim::FatTreeShape{{3.125e9, 1e-5}, {4, 3}, {1, 2}, {1, 2}});
    const auto plain = sim::parse_platform_json(R"({"kind": "fat-tree", "down": [2, 2], "up": [1, 2]})", "p.json");
    CHECK(plain.hosts.size() == 4);
    CHECK(std::get<sim::FatTreeShape>(plain.shape).parallel == std::vector<unsigned>{1, 1});
}

TEST_CASE("a torus and a full graph") {
    const auto torus = sim::parse_platform_json(
        R"({"kind": "torus", "dimensions": [4, 3, 2], "count": 24, "bandwidth": 1e9, "latency": "1us"})", "p.json");
    CHECK(torus.hosts.size() == 24);
    // A direction with one node is none.
    const auto flat = sim::parse_platform_json(R"({"kind": "torus", "dimensions": [1, 3, 1, 1]})", "p.json");
    CHECK(flat.hosts.size() == 3);
    CHECK(std::get<sim::TorusShape>(flat.shape).dimensions == std::vector<unsigned long>{3});
    const auto point = sim::parse_platform_json(R"({"kind": "torus", "dimensions": [1, 1]})", "p.json");
    CHECK(std::get<sim::TorusShape>(point.shape).dimensions == std::vector<unsigned long>{1});
    CHECK(std::get<sim::TorusShape>(torus.shape) == sim::TorusShape{{1e9, 1e-6}, {4, 3, 2}});
    const auto full = sim::parse_platform_json(
        R"({"kind": "full", "hosts": [{"name": "n", "count": 3}, {"name": "far"}], "latency": "1ms",
            "links": [{"between": ["far", "n1"], "latency": "90ms", "comment": "an ocean"}]})",
        "p.json");
    const auto& shape = std::get<sim::FullShape>(full.shape);
    CHECK(shape.link == sim::LinkFigures{1.25e9, 1e-3});
    REQUIRE(shape.pairs.size() == 1);
    CHECK(shape.pairs[0] == sim::FullShape::Pair{1, 3, {1.25e9, 90e-3}});
}

TEST_CASE("a tree: switches, and hosts under them") {
    const auto plan = sim::parse_platform_json(
        R"({"kind": "tree", "bandwidth": "10Gbps", "latency": "5us", "switches": [{"name": "core"},
            {"name": "rack", "under": "core", "bandwidth": "40Gbps"}, {"name": "shelf", "under": "rack", "latency": 0}],
            "hosts": [{"name": "server", "under": "core"}, {"name": "n", "count": 2, "under": "shelf", "cores": 4}]})",
        "p.json");
    REQUIRE(plan.hosts.size() == 3);
    CHECK(plan.hosts[2] == sim::StarHost{"n1", 1e9, 4, 1.25e9, 5e-6});
    CHECK(std::get<sim::TreeShape>(plan.shape) ==
          sim::TreeShape{{{"core", -1, {}}, {"rack", 0, {5e9, 5e-6}}, {"shelf", 1, {1.25e9, 0}}}, {0, 2, 2}});
}

TEST_CASE("what is wrong with a tree is said with its path") {
    const auto switches = [](const std::string& list) {
        return error_of(R"({"kind": "tree", "hosts": [{"name": "a", "under": "core"}], "switches": )" + list + "}");
    };
    CHECK(switches(R"([{"name": "core"}])").empty());
    CHECK(switches("[]").starts_with("/switches: expected an array of switches: the root, and others \"under\""));
    CHECK(switches(R"([{}])") == "/switches/0: a switch without name; expected \"name\"");
    CHECK(switches(R"([{"name": "core", "latency": 1}])").starts_with("/switches/0/latency: unknown key"));
    CHECK(switches(R"([{"name": "core"}, {"name": "r"}])") ==
          "/switches/1: \"under\" is missing; expected the name of a switch that stands before");
    CHECK(switches(R"([{"name": "core"}, {"name": "r", "under": "r"}])") ==
          "/switches/1/under: there is no switch \"r\"; there are core");
    CHECK(switches(R"([{"name": "core"}, {"name": "r", "under": "cor"}])") ==
          "/switches/1/under: there is no switch \"cor\"; did you mean \"core\"?");
    CHECK(switches(R"([{"name": "core"}, {"name": "core", "under": "core"}])") ==
          "/switches/1/name: two switches are named \"core\"");
    CHECK(switches(R"([{"name": "core"}, {"name": "a", "under": "core"}])") ==
          "/hosts: \"a\" is the name of a switch, too");
    std::string deep = R"([{"name": "s0"})";
    for (int i = 1; i <= 16; ++i)
        deep += R"(, {"name": "s)" + std::to_string(i) + R"(", "under": "s)" + std::to_string(i - 1) + "\"}";
    CHECK(switches(deep + "]") == "/switches/16: lies 16 levels below the root");
    const auto hosts = [](const std::string& rest) {
        return error_of(R"({"kind": "tree", "switches": [{"name": "core"}])" + rest + "}");
    };
    CHECK(hosts("") == "expected \"hosts\", each \"under\" one of \"switches\"");
    CHECK(hosts(R"(, "hosts": [{"name": "a"}])") ==
          "/hosts/0: \"under\" is missing; expected the name of a switch that stands before");
    CHECK(hosts(R"(, "hosts": [{"name": "a", "under": 3}])") == "/hosts/0/under: is 3; expected the name of a switch");
    CHECK(error_of(R"({"kind": "tree", "hosts": []})") == "/hosts: is empty; expected at least one host");
}

TEST_CASE("what is wrong with a shape is said with its path") {
    const auto fat_tree = [](const std::string& rest) { return error_of(R"({"kind": "fat-tree", )" + rest + "}"); };
    CHECK(fat_tree(R"("up": [1])") ==
          "\"down\" is missing; expected a number a level: nodes below each of its switches");
    CHECK(fat_tree(R"("down": [4, 4], "up": [1]})").find("not valid JSON") != std::string::npos);
    CHECK(fat_tree(R"("down": [4, 4], "up": [1])") == "/up: has 1 levels; expected 2 as \"down\" has");
    CHECK(fat_tree(R"("down": [4, 4], "up": [1, 2], "parallel": [1])") ==
          "/parallel: has 1 levels; expected 2 as \"down\" has");
    CHECK(fat_tree(R"("down": [4, 4], "up": [1, 2], "count": 17)") == "/count: makes 17 hosts; expected 4 * 4 = 16");
    CHECK(fat_tree(R"("down": [4, 4], "up": [1, 2], "hosts": [{"name": "a", "count": 15}])") ==
          "/hosts: makes 15 hosts; expected 4 * 4 = 16");
    CHECK(fat_tree(R"("down": [4, 0], "up": [1, 2])") == "/down/1: is 0; expected a whole number of at least 1");
    CHECK(fat_tree(R"("down": [4, 2.5], "up": [1, 2])") == "/down/1: is 2.5; expected a whole number of at least 1");
    CHECK(fat_tree(R"("down": 4, "up": [1, 2])").starts_with("/down: is 4; expected a list of 1 to 16 whole numbers"));
    CHECK(fat_tree(R"("down": [], "up": [])").starts_with("/down: is []; expected a list"));
    CHECK(fat_tree(R"("down": [2147483647, 2147483647], "up": [1, 1])") ==
          "/down: makes 4.61168601413e+18 hosts; expected at most 1000001");
    CHECK(fat_tree(R"("down": [4, 4], "up": [1, 2000000000])") ==
          "/up: makes 8000000016 links; expected at most 500000");
    CHECK(fat_tree(R"("down": [4, 4], "up": [1, 2], "bandwidth": 0)") ==
          "/bandwidth: is 0; expected a value above zero");
    CHECK(fat_tree(R"("down": [4, 4], "up": [1, 2], "bandwidth": "-1Gbps")")
              .starts_with("/bandwidth: \"-1Gbps\": negative"));
    CHECK(fat_tree(R"("down": [4], "up": [1], "hosts": [{"name": "a", "bandwidth": "1Gbps"}])")
              .starts_with("/hosts/0/bandwidth: unknown key"));
    CHECK(fat_tree(R"("dwon": [4], "up": [1])") == "/dwon: unknown key; did you mean \"down\"?");

    const auto torus = [](const std::string& rest) { return error_of(R"({"kind": "torus", )" + rest + "}"); };
    CHECK(torus(R"("dimensions": [4, 2], "count": 9)") == "/count: makes 9 hosts; expected 4 * 2 = 8");
    CHECK(torus(R"("dimensions": [1000, 1000, 1000])") ==
          "/dimensions: makes 1000000000 hosts; expected at most 1000001");
    CHECK(torus(R"("dimensions": [4, -2])") == "/dimensions/1: is -2; expected a whole number of at least 1");
    CHECK(torus(R"("count": 8)") == "\"dimensions\" is missing; expected a number a dimension");
    CHECK(torus(R"("dimensions": [4], "down": [4])").starts_with("/down: unknown key"));

    const auto full = [](const std::string& links) {
        return error_of(R"({"kind": "full", "hosts": [{"name": "node", "count": 3}], "links": )" + links + "}");
    };
    CHECK(full(R"([{"between": ["node0", "nod1"]}])") ==
          "/links/0/between/1: there is no host \"nod1\"; did you mean \"node1\"?");
    CHECK(full(R"([{"between": ["node0", "x"]}])") ==
          "/links/0/between/1: there is no host \"x\"; there are node0, node1 and node2");
    CHECK(full(R"([{"between": ["node0", "node0"]}])") == "/links/0/between: names one host twice; expected two hosts");
    CHECK(full(R"([{"between": ["node0", "node1"]}, {"between": ["node1", "node0"]}])") ==
          "/links/1/between: a second link between these hosts");
    CHECK(full(R"([{"between": ["node0"]}])").starts_with("/links/0/between: expected the names of two hosts"));
    CHECK(full(R"([{"between": ["node0", "node1"], "latency": -1}])") ==
          "/links/0/latency: is -1; expected zero or more");
    CHECK(full("{}") == "/links: expected an array of links");
    CHECK(error_of(R"({"kind": "full", "count": 3000})") == "/count: makes 4498500 links; expected at most 500000");
}

TEST_CASE("what JSON itself allows and a platform does not") {
    CHECK(error_of(R"({"kind": "star", "count": 2, "count": 3})") == "duplicate key \"count\"");
    CHECK(error_of(std::string(2000, '[') + std::string(2000, ']')) == "nested deeper than 16 levels");
    CHECK(error_of(R"({"kind": "star", "count": 2, "bandwidth": 1e999})").find("1e999") != std::string::npos);
    CHECK(error_of(R"({"kind": "star", "count": 2, "bandwidth": "1e308Tbps"})")
              .starts_with("/bandwidth: \"1e308Tbps\": not a finite number"));
    CHECK(error_of(R"({"kind": "star", "count": 2000000000})") ==
          "/count: makes 2000000000 hosts; expected at most 1000001");
    CHECK(error_of("") != "");
    CHECK(error_of("\x1f\x8b").starts_with("is compressed by gzip"));
    CHECK(error_of("\xef\xbb\xbf{}").starts_with("starts with a byte order mark"));
    CHECK(error_of("{\"kind\": \"star\", \"count\": 1, \"a\\nb\": 1}").find('\n') == std::string::npos);
    CHECK(error_of(R"({"kind": "star", "count": )" + std::string(10000, '9') + "}").size() < 320);
}
