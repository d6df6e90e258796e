// Long runs of the flow network: a link that is never idle, so that nothing begins anew, against sums in extended
// precision; and the same staleness as over SimGrid.
#include "sim/driver.hpp"
#include "sim/network_fixture.hpp"
#include "support/checkers.hpp"
#include "support/random.hpp"
#include "support/simulate.hpp"
#include "support/temporary_directory.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

using namespace rubato;
using namespace rubato::tests;

namespace {

using Messages = std::vector<RecordingSink::Message>;

struct Host {
    double bandwidth, latency;
};

/// Max-min on the link into host 0, all flows looked at for each event.
class Reference {
public:
    Reference(std::vector<Host> hosts, const Messages& messages) : hosts_(std::move(hosts)), on_host_(hosts_.size()) {
        for (std::size_t i = 0; i < messages.size(); ++i)
            begins_.push_back({static_cast<std::int64_t>(i), static_cast<std::size_t>(messages[i].from),
                               static_cast<long double>(messages[i].bytes),
                               static_cast<long double>(messages[i].at) * 1e-9L + latency(messages[i].from)});
        std::sort(begins_.begin(), begins_.end(), [](const Flow& a, const Flow& b) { return a.begin < b.begin; });
    }
    /// Dates in ns, by number of the message.
    std::vector<Time> run() {
        std::vector<Time> times(begins_.size());
        long double now = 0;
        for (std::size_t next = 0; next < begins_.size() || !flows_.empty();) {
            const auto first = std::min_element(flows_.begin(), flows_.end(), [&](const Flow& a, const Flow& b) {
                return a.left / rate(a) < b.left / rate(b);
            });
            const long double end = first == flows_.end() ? 1e30L : now + first->left / rate(*first);
            const bool begins = next < begins_.size() && begins_[next].begin <= end;
            const long double date = begins ? begins_[next].begin : end;
            for (Flow& flow : flows_) flow.left -= (date - now) * rate(flow);
            now = date;
            if (begins) {
                flows_.push_back(begins_[next++]);
            } else {
                times[static_cast<std::size_t>(first->token)] = static_cast<Time>(std::round(now * 1e9L));
                flows_.erase(first);
            }
            share();
        }
        return times;
    }

private:
    struct Flow {
        std::int64_t token;
        std::size_t host;
        long double left, begin;
    };
    long double latency(sim::HostId from) const {
        return static_cast<long double>(hosts_[0].latency + hosts_[static_cast<std::size_t>(from)].latency);
    }
    long double rate(const Flow& flow) const {
        const long double share = level_ / latency(static_cast<sim::HostId>(flow.host));
        return std::min(share, static_cast<long double>(hosts_[flow.host].bandwidth) / on_host_[flow.host]);
    }
    void share() {
        std::fill(on_host_.begin(), on_host_.end(), 0);
        for (const Flow& flow : flows_) ++on_host_[flow.host];
        std::vector<bool> pinned(hosts_.size(), false);
        for (bool again = true; again;) {
            long double rest = hosts_[0].bandwidth;
            long double weight = 0;
            for (std::size_t host = 1; host < hosts_.size(); ++host) {
                if (pinned[host])
                    rest -= hosts_[host].bandwidth;
                else
                    weight += on_host_[host] / latency(static_cast<sim::HostId>(host));
            }
            level_ = rest / weight;
            again = false;
            for (std::size_t host = 1; host < hosts_.size(); ++host) {
                if (pinned[host] || on_host_[host] == 0) continue;
                const long double wanted = on_host_[host] * level_ / latency(static_cast<sim::HostId>(host));
                pinned[host] = wanted > hosts_[host].bandwidth;
                again = again || pinned[host];
            }
        }
    }

    std::vector<Host> hosts_;
    std::vector<int> on_host_;
    std::vector<Flow> begins_, flows_;
    long double level_ = 0;
};

/// Mean staleness of the applied gradients, over the network model that the scenario names.
double mean_staleness(Scenario scenario, const std::string& model) {
    scenario.cluster.network.model = model;
    test::Ledger ledger;
    sim::RunInput input;
    input.scenario = &scenario;
    input.samples = 1000000;
    input.parameters = 1;
    input.observer = [&](Time, RoleId, const Event&, const Actions& actions) { ledger.add(actions); };
    REQUIRE(sim::Simulation(scenario).run(input).status == Status::finished);
    double sum = 0;
    double count = 0;
    for (const auto& row : ledger.gradients) {
        if (row.outcome != Outcome::applied) continue;
        sum += static_cast<double>(row.staleness());
        ++count;
    }
    REQUIRE(count > 1000);
    return sum / count;
}

}  // namespace

TEST_CASE("a long run on a link that is never idle: each date to the nanosecond") {
    const std::vector<Host> hosts{{1.25e9, 1e-5}, {5e9, 2e-5}, {2e8, 1e-5},    {1.25e9, 5e-4},
                                  {3e8, 3e-6},    {4e8, 1e-3}, {1.25e9, 4e-5}, {1e9, 1e-5}};
    std::string platform = R"({"kind": "star", "hosts": [)";
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        char entry[120];
        std::snprintf(entry, sizeof entry, "%s{\"name\": \"h%zu\", \"bandwidth\": %.17g, \"latency\": %.17g}",
                      i ? ", " : "", i, hosts[i].bandwidth, hosts[i].latency);
        platform += entry;
    }
    const test::TemporaryDirectory directory;
    const std::string path = (directory.path() / "p.json").string();
    std::ofstream(path) << platform << "]}";
    // The first flow lasts longer than all the others, with a link as wide as that of host 0.
    Messages messages{{1, 0, 2e12, 0}};
    test::Random random{7};
    for (Time at = 0; messages.size() < 600000; at += static_cast<Time>(random.below(2400000)))
        messages.push_back(
            {static_cast<sim::HostId>(2 + random.below(6)), 0, 1e4 * static_cast<double>(1 + random.below(200)), at});
    const Scenario scenario = scenario_on(path, "flow");
    const auto network = sim::open_network({&scenario, 0});
    RecordingSink sink(*network, messages);
    const auto& ours = sink.run();
    REQUIRE(ours.size() == messages.size());
    const auto times = Reference(hosts, messages).run();
    Time greatest = 0;
    for (const auto& arrival : ours)
        greatest = std::max(greatest, std::abs(arrival.time - times[static_cast<std::size_t>(arrival.token)]));
    MESSAGE("greatest difference in ns: " << greatest << ", of " << ours.back().time);
    CHECK(greatest <= 1);
    // The link was full all the time.
    double bytes = 0;
    for (const auto& message : messages) bytes += message.bytes;
    const double full = bytes / hosts[0].bandwidth;
    CHECK(static_cast<double>(ours.back().time) * 1e-9 == doctest::Approx(full).epsilon(1e-6));
}

TEST_CASE("mean staleness is that over SimGrid within 1 %") {
    const struct {
        const char* protocol;
        int lambda;
        double bytes, bandwidth, server_bandwidth;
        int cap;
    } cases[] = {
        {"async", 30, 3e8, 1.25e9, 0, 8},       // the server's link is the bottleneck
        {"async", 16, 2e7, 1.25e8, 1.25e9, 8},  // the workers' are
        {"async", 40, 1e8, 2.5e8, 1.25e9, 0},   // in between, without a limit
        {"n-softsync", 30, 3e7, 1.25e9, 0, 8},
    };
    for (const auto& each : cases) {
        CAPTURE(each.lambda);
        CAPTURE(each.bytes);
        Scenario scenario = test::timing_scenario(each.protocol, each.lambda, 64);
        scenario.protocol.n = 4;
        scenario.cost.push_bytes = scenario.cost.pull_bytes = static_cast<std::int64_t>(each.bytes);
        scenario.cluster.network.concurrent_transfers = each.cap;
        scenario.cluster.network.star.bandwidth = each.bandwidth;
        scenario.cluster.network.star.server_bandwidth = each.server_bandwidth;
        scenario.stop.gradients = 10000;
        CHECK(mean_staleness(scenario, "flow") == doctest::Approx(mean_staleness(scenario, "simgrid")).epsilon(0.01));
    }
}
