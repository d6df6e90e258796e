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
    Scenario scenario = workers({{8, "default", 0}});
    CHECK(error(scenario, 2) ==
          "8 workers need 8 hosts besides the server's, and the platform offers 1; workers.hosts or per_host puts "
          "several workers on a host");
    scenario.cluster.server_host = "nas";
    CHECK(error(scenario, 1) == "cluster.server_host: the platform has no host \"nas\"; it has 1 host: h0");
    scenario.cluster.server_host.clear();
    scenario.cluster.hosts = {"h1", "x"};
    CHECK(error(scenario, 9) == "cluster.hosts: the platform has no host \"x\"; it has 9 hosts: h0, h1, h2, h3, ...");
    scenario.cluster.hosts = {"h1", "h1"};
    CHECK(error(scenario, 9).starts_with("cluster.hosts: host \"h1\" is listed twice"));
    CHECK(error(workers({{1, "v100", 0}}), 2) == "workers use device \"v100\", which cluster.devices does not define");
    Scenario unknown = workers({{1, "default", 0}});
    unknown.cost.flops_per_sample = 0;
    CHECK(error(unknown, 2).starts_with("the cost of a gradient is unknown"));
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
