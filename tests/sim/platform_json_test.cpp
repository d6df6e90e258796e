#include "sim/platform_json.hpp"

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
    CHECK(error_of(R"({"kind": "tree", "count": 2})") ==
          "/kind: is \"tree\"; only \"star\" can be read so far, other kinds not yet (a SimGrid XML file describes any "
          "platform)");
    CHECK(error_of("[]") == "expected an object with \"kind\": \"star\"");
    CHECK(error_of(R"({"kind": "star"})") == "expected \"hosts\", or \"count\" for hosts that are all alike");
    CHECK(error_of(R"({"kind": "star", "hosts": []})") == "/hosts: is empty; expected at least one host");
    CHECK(error_of(R"({"kind": "star", "hosts": [{"name": "a"}, {"name": "a"}]})") ==
          "/hosts: two hosts are named \"a\"");
    CHECK(error_of(R"({"kind": "star", "hosts": [{"name": "a", "bandwith": "1Gbps"}]})") ==
          "/hosts/0/bandwith: unknown key; expected one of name, count, speed, cores, bandwidth, latency, comment");
    CHECK(error_of(R"({"kind": "star", "hosts": [{"speed": "1Gf"}]})").starts_with("/hosts/0: a host without name"));
    CHECK(error_of(R"({"kind": "star", "count": 2, "bandwidth": "1gbps"})")
              .starts_with("/bandwidth: \"1gbps\": unknown unit \"gbps\", did you mean"));
    CHECK(error_of(R"({"kind": "star", "count": 2, "speed": -1})") == "/speed: is -1; expected a value above zero");
    CHECK(error_of(R"({"kind": "star", "count": "2"})") == "/count: is \"2\"; expected a whole number of at least 1");
    CHECK(error_of(R"({"kind": "star", "count": 2, "latency": true})") ==
          "/latency: expected a string with a unit, or a number");
    CHECK(error_of("{\"kind\": \"star\",\n \"count\": 2,}").find("line 2") != std::string::npos);
    CHECK(platform_error([] { sim::read_platform_json("/nowhere/p.json"); }) ==
          "/nowhere/p.json: cannot open the platform file");
}
