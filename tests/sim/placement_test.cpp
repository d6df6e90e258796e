#include "sim/placement.hpp"

#include "sim/network_fixture.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::tests;

namespace {

std::vector<sim::HostInfo> hosts(int count, int cores = 1) {
    std::vector<sim::HostInfo> all;
    for (int i = 0; i < count; ++i) all.push_back({std::string("h").append(std::to_string(i)), 1e9, cores});
    return all;
}

Scenario workers(std::vector<WorkerGroup> groups) {
    Scenario scenario;
    scenario.workers.groups = std::move(groups);
    scenario.cost.flops_per_sample = 1e6;
    return scenario;
}

using Hosts = std::vector<sim::HostId>;

}  // namespace

TEST_CASE("one worker a host, beside the server's") {
    const Scenario scenario = workers({{3, "default", 0}});
    CHECK(sim::star_hosts(scenario) == 4);
    const auto placement = sim::place(scenario, hosts(4));
    CHECK(placement.host_of_role == Hosts{0, 1, 2, 3});
    CHECK(placement.workers_on_host_of_role == std::vector<int>{0, 1, 1, 1});
    CHECK(placement.device_of_role[0] == nullptr);
}

TEST_CASE("groups fill hosts of their own") {
    Scenario scenario = workers({{5, "v100", 4}, {3, "a100", 2}});
    scenario.cluster.devices["v100"] = {DeviceSpec::Kind::affine, {}, 0, 1, 1, 0.1, 0, 0};
    scenario.cluster.devices["a100"] = {DeviceSpec::Kind::affine, {}, 0, 1, 1, 0.2, 0, 0.5};
    CHECK(sim::star_hosts(scenario) == 5);
    const auto placement = sim::place(scenario, hosts(5));
    CHECK(placement.host_of_role == Hosts{0, 1, 1, 1, 1, 2, 3, 3, 4});
    CHECK(placement.workers_on_host_of_role == std::vector<int>{0, 4, 4, 4, 4, 1, 2, 2, 1});
    CHECK(placement.device_name_of_role[6] == "a100");
    CHECK(placement.seconds(1, 32) == 0.1);
    CHECK(placement.seconds(6, 32) == doctest::Approx(0.3));
    CHECK(placement.seconds(8, 32) == 0.2);
}

TEST_CASE("workers.hosts spreads blocks evenly") {
    Scenario scenario = workers({{5, "default", 0}});
    scenario.workers.hosts = 2;
    CHECK(sim::star_hosts(scenario) == 3);
    CHECK(sim::place(scenario, hosts(9)).host_of_role == Hosts{0, 1, 1, 1, 2, 2});
}

TEST_CASE("named hosts, in the order given, the server's own included") {
    Scenario scenario = workers({{2, "default", 0}});
    scenario.cluster.server_host = "h2";
    CHECK(sim::place(scenario, hosts(4)).host_of_role == Hosts{2, 0, 1});
    scenario.cluster.hosts = {"h3", "h2"};
    const auto placement = sim::place(scenario, hosts(4));
    CHECK(placement.host_of_role == Hosts{2, 3, 2});
    CHECK(placement.workers_on_host_of_role == std::vector<int>{1, 1, 1});
}

TEST_CASE("what cannot be placed is refused with figures and names") {
    const auto error = [](const Scenario& scenario, int count) {
        return platform_error([&] { sim::place(scenario, hosts(count)); });
    };
    CHECK(error(workers({{8, "default", 4}}), 2) ==
          "workers.count: 8 workers need 2 hosts besides the server's, and the platform offers 1; workers.hosts or "
          "per_host puts "
          "several workers on a host");
    Scenario scenario = workers({{8, "default", 0}});
    scenario.workers.hosts = 2;
    CHECK(error(scenario, 1)
              .starts_with("workers.count: 8 workers need 2 hosts besides the server's, and the platform offers 0"));
    scenario.workers.hosts = 0;
    scenario.cluster.server_host = "nas";
    CHECK(error(scenario, 1) == "cluster.server_host: the platform has no host \"nas\"; it has 1 host: h0");
    scenario.cluster.server_host.clear();
    scenario.cluster.hosts = {"h1", "x"};
    CHECK(error(scenario, 9) == "cluster.hosts: the platform has no host \"x\"; it has 9 hosts: h0, h1, h2, h3, ...");
    scenario.cluster.hosts = {"h1", "h1"};
    CHECK(error(scenario, 9).starts_with("cluster.hosts: host \"h1\" is listed twice"));
    CHECK(error(workers({{1, "v100", 0}}), 2) ==
          "cluster.devices: workers use device \"v100\", which is not defined there");
    Scenario unknown = workers({{1, "default", 0}});
    unknown.cost.flops_per_sample = 0;
    CHECK(error(unknown, 2).starts_with("cost: what a gradient costs is unknown"));
}

TEST_CASE("with fewer hosts than workers they are shared, and it is said") {
    const Scenario scenario = workers({{8, "default", 0}});
    const auto two = sim::place(scenario, hosts(2));
    CHECK(two.host_of_role == Hosts{0, 1, 1, 1, 1, 1, 1, 1, 1});
    REQUIRE(two.warnings.size() == 2);
    CHECK(two.warnings[0] == "8 workers share 1 host, up to 8 a host; workers.hosts = 1 says so on purpose");
    CHECK(two.warnings[1] ==
          "8 workers on host \"h1\" share its 1 core: a gradient takes 8 times as long as on a core of its own");
    CHECK(two.seconds(1, 32) == doctest::Approx(8 * 32 * 1e6 / 1e9));

    const auto four = sim::place(scenario, hosts(4, 2));
    CHECK(four.host_of_role == Hosts{0, 1, 1, 1, 2, 2, 2, 3, 3});
    REQUIRE(four.warnings.size() == 2);
    CHECK(four.warnings[0] == "8 workers share 3 hosts, up to 3 a host; workers.hosts = 3 says so on purpose");
    CHECK(four.warnings[1] ==
          "3 workers on host \"h1\" share its 2 cores: a gradient takes 1.5 times as long as on a core of its own");

    const auto one = sim::place(scenario, hosts(1, 16));
    CHECK(one.host_of_role == Hosts{0, 0, 0, 0, 0, 0, 0, 0, 0});
    REQUIRE(one.warnings.size() == 1);
    CHECK(one.warnings[0].starts_with("8 workers share the server's host, the platform's only one, up to 8 a host"));
    CHECK(one.seconds(1, 32) == doctest::Approx(32 * 1e6 / 1e9));
    Scenario on_purpose = scenario;
    on_purpose.workers.hosts = 1;
    CHECK(sim::place(on_purpose, hosts(1, 16)).host_of_role == one.host_of_role);
    CHECK(sim::place(on_purpose, hosts(1, 16)).warnings.empty());
}

TEST_CASE("cores of their own slow nobody, and devices with seconds are not asked for cores") {
    const Scenario scenario = workers({{4, "default", 4}});
    const auto four = sim::place(scenario, hosts(2, 4));
    CHECK(four.warnings.empty());
    CHECK(four.seconds(1, 10) == doctest::Approx(10 * 1e6 / 1e9));
    CHECK(sim::place(scenario, hosts(2, 3)).warnings.size() == 1);
    Scenario table = workers({{4, "v100", 4}});
    table.cluster.devices["v100"] = {DeviceSpec::Kind::affine, {}, 0, 1, 1, 0.1, 0, 0};
    CHECK(sim::place(table, hosts(2, 1)).warnings.empty());
    CHECK(sim::place(table, hosts(2, 1)).seconds(1, 10) == 0.1);
}

TEST_CASE("a batch outside the table is warned about once a device") {
    Scenario scenario = workers({{3, "v100", 0}});
    DeviceSpec device;
    device.kind = DeviceSpec::Kind::table;
    device.table = {{8, 0.03}, {16, 0.05}};
    scenario.cluster.devices["v100"] = device;
    scenario.workers.batch_size = 32;
    const auto placement = sim::place(scenario, hosts(4));
    REQUIRE(placement.warnings.size() == 1);
    CHECK(placement.warnings[0] ==
          "cluster.devices.v100: batch size 32 lies outside the table of seconds; extrapolated");
    scenario.workers.batch_size = 12;
    CHECK(sim::place(scenario, hosts(4)).warnings.empty());
}
