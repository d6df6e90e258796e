// Runs models.txt: every case is derived there by hand.
#include "sim/expression.hpp"
#include "sim/network_fixture.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <sstream>

using namespace rubato;
using namespace rubato::tests;

namespace {

struct Case {
    int line = 0;
    std::string prose;
    std::vector<std::string> commands;
    std::vector<std::string> expected;
};

std::vector<Case> read_cases(const std::string& path) {
    std::ifstream in(path);
    REQUIRE(in);
    std::vector<Case> cases;
    Case current;
    bool answers = false;
    const auto finish = [&] {
        if (!current.expected.empty()) cases.push_back(current);
        current = {};
        answers = false;
    };
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        if (line.empty()) {
            finish();
        } else if (line[0] == '#') {
            current.prose += line.substr(1) + "\n";
        } else if (line == "----") {
            answers = true;
        } else {
            if (current.line == 0) current.line = number;
            (answers ? current.expected : current.commands).push_back(line);
        }
    }
    finish();
    return cases;
}

sim::HostId host_named(const sim::Network& network, const std::string& name) {
    for (std::size_t i = 0; i < network.hosts().size(); ++i)
        if (network.hosts()[i].name == name) return static_cast<sim::HostId>(i);
    FAIL("no host " << name);
    return -1;
}

/// The network that the first command names; null where its file is missing.
std::unique_ptr<sim::Network> open(const std::string& command) {
    std::istringstream words(command);
    std::string kind, file, model;
    words >> kind;
    sim::NetworkRequest request;
    Scenario scenario;
    if (kind == "star") {
        StarSpec star;
        words >> request.star_hosts >> star.bandwidth >> star.latency >> star.server_bandwidth >> model;
        scenario = scenario_on("", model);
        scenario.cluster.network.star = star;
    } else {
        REQUIRE(kind == "network");
        words >> file >> model;
        const bool shared = file.starts_with("shared/");
        const auto path = shared ? shared_file("platforms/" + file.substr(7)) : data_file(file);
        if (!path) return nullptr;
        scenario = scenario_on(*path, model);
    }
    request.scenario = &scenario;
    return sim::open_network(request);
}

/// Compares with a line "NUMBER [failed] TIME = DERIVATION".
void compare(const std::string& line, std::int64_t number, Time time, bool ok) {
    const auto equals = line.find('=');
    REQUIRE(equals != std::string::npos);
    std::istringstream words(line.substr(0, equals));
    std::int64_t expected_number = 0;
    std::string word;
    words >> expected_number >> word;
    const bool expected_ok = word != "failed";
    if (!expected_ok) words >> word;
    const double stated = std::stod(word);
    const double derived = evaluate(line.substr(equals + 1));
    const double actual = static_cast<double>(time) * 1e-9;
    const std::string outcome = std::to_string(number) + (ok ? " " : " failed ");
    INFO("expected ", line, "\nactual   ", outcome, actual);
    CHECK(number == expected_number);
    CHECK(ok == expected_ok);
    CHECK(std::abs(stated - derived) <= 1e-9 * derived + 1e-12);
    CHECK(std::abs(actual - derived) <= 1e-9 * derived + 1e-9);
}

void run_case(const Case& test) {
    const auto network = open(test.commands.front());
    if (!network) {
        MESSAGE("skipped, as its platform is not here: " << test.commands.front());
        return;
    }
    std::vector<RecordingSink::Message> messages;
    std::vector<RecordingSink::Arrival> arrivals;
    for (std::size_t i = 1; i < test.commands.size(); ++i) {
        std::istringstream words(test.commands[i]);
        std::string kind, from, to;
        double bytes = 0, at = 0;
        words >> kind >> from >> to >> bytes >> at;
        const auto source = host_named(*network, from), target = host_named(*network, to);
        if (kind == "control")
            arrivals.push_back({static_cast<std::int64_t>(i) - 1, network->control_delay(source, target, bytes), true});
        else
            messages.push_back({source, target, bytes, std::llround(at * 1e9)});
    }
    RecordingSink sink(*network, messages);
    for (const auto& arrival : sink.run()) arrivals.push_back(arrival);
    REQUIRE(arrivals.size() == test.expected.size());
    for (std::size_t i = 0; i < arrivals.size(); ++i)
        compare(test.expected[i], arrivals[i].token + 1, arrivals[i].time, arrivals[i].ok);
}

}  // namespace

TEST_CASE("network models say what the hand derivations say") {
    const auto cases = read_cases(data_file("../models.txt"));
    REQUIRE(cases.size() >= 20);
    for (const Case& test : cases) {
        INFO("models.txt:", test.line, "\n", test.prose);
        CAPTURE(test.commands.front());
        run_case(test);
    }
}
