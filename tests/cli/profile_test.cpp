// Profiles: the file, and what they give scenarios.
#include "cli/calibrate/profile.hpp"
#include "cli/calibrate/use_profile.hpp"
#include "cli/json_reader.hpp"
#include "cli/scratch.hpp"
#include "learn/random.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace rubato;
using namespace rubato::cli;
using doctest::Approx;

namespace {

const std::string two_classes = R"({"profile_version": 1, "date": "2026-01-31T12:00:00Z", "host": "h", "cores": 4,
"levels": [0, 0.5, 1],
"compute": {
  "v100": {"source": "run", "batches": {"8": {"n": 40, "mean": 0.03, "quantiles": [0.02, 0.03, 0.05]},
                                        "32": {"n": 40, "mean": 0.1}},
           "host_sharing": {"2": 1, "4": 1.5}},
  "a100": {"batches": {"32": {"mean": 0.05}}}},
"server": {"bytes": [1000, 2000], "push": {"fixed_s": 0.001}, "update": {"fixed_s": 0.002, "per_byte_s": 1e-9}},
"network": {"bytes": [1000, 2000], "latency_s": 4e-5, "bandwidth": 1e9, "server_bandwidth": 3e9}})";

const std::string one_class = R"({"profile_version": 1, "compute": {"cpu": {"batches": {"32": {"mean": 0.1}}}}})";

std::string text_with(const std::string& workers, const std::string& cluster) {
    return "{\"cost\": {\"push_bytes\": 1500}, \"workers\": " + workers +
           ",\n\"protocol\": {\"name\": \"async\"},\n\"cluster\": " + cluster + "}";
}

const std::string mixed = R"({"groups": [{"count": 2, "device": "v100"}, {"count": 2, "device": "a100"}]})";

struct Folder {
    Folder() {
        scratch.write("two.json", two_classes);
        scratch.write("one.json", one_class);
    }
    Loaded read(const std::string& workers, const std::string& cluster) const {
        return read_scenario(scratch.write("s.json", text_with(workers, cluster)));
    }
    std::string refusal(const std::string& workers, const std::string& cluster) const {
        return without_folder([&] { read(workers, cluster); });
    }
    std::string profile_refusal(const std::string& text) const {
        return without_folder([&] { read_profile(scratch.write("p.json", text)); });
    }
    std::string without_folder(const std::function<void()>& call) const {
        try {
            call();
        } catch (const InputError& error) {
            std::string what = error.what();
            CHECK(what.find('\n') == std::string::npos);
            const std::string folder = scratch.folder.string() + "/";
            for (auto at = what.find(folder); at != std::string::npos; at = what.find(folder))
                what.erase(at, folder.size());
            return what;
        }
        return {};
    }
    Scratch scratch;
};

const std::string apart =
    "cluster.profile: its times were taken with up to 4 workers on a host, and here each worker has one of its own; "
    "workers.hosts=1 puts all on one";

}  // namespace

TEST_CASE("a profile gives devices, server and star") {
    const Folder folder;
    const Loaded loaded = folder.read(mixed, R"({"profile": "two.json"})");
    const ClusterSpec& cluster = loaded.scenario.cluster;
    const DeviceSpec& v100 = cluster.devices.at("v100");
    CHECK(v100.kind == DeviceSpec::Kind::table);
    CHECK(v100.table == std::vector<std::pair<double, double>>{{8, 0.03}, {32, 0.1}});
    REQUIRE(v100.shapes.size() == 1);
    CHECK(v100.shapes[0].batch == 8);
    // Their mean, 0.25 * 0.02 + 0.5 * 0.03 + 0.25 * 0.05, is 0.0325.
    CHECK(v100.shapes[0].factors[1] == Approx(0.03 / 0.0325));
    CHECK(v100.sharing == std::vector<std::pair<double, double>>{{2, 1}, {4, 1.5}});
    CHECK(cluster.devices.at("a100").shapes.empty());
    CHECK(cluster.server.push_s == 0.001);
    CHECK(cluster.server.pull_s == 0);
    CHECK(cluster.server.update(loaded.scenario.cost) == Approx(0.002 + 1500e-9));
    CHECK(cluster.network.star.latency == Approx(2e-5));  // of each of the two links
    CHECK(cluster.network.star.bandwidth == 1e9);
    CHECK(cluster.network.star.server_bandwidth == 3e9);
    CHECK(cluster.network.star.measured_bytes == MeasuredBytes{1000, 2000});
    CHECK(loaded.tree.at("cluster").find("profile") == nullptr);
    CHECK(loaded.notes == std::vector<std::string>{apart});
}

TEST_CASE("where workers share hosts a profile does not say that they do not") {
    const Folder folder;
    std::string placed = mixed;
    placed.insert(placed.rfind('}'), R"(, "hosts": 1)");
    CHECK(folder.read(placed, R"({"profile": "two.json"})").notes.empty());
}

TEST_CASE("the saved scenario needs no profile") {
    const Folder folder;
    const Loaded loaded = folder.read(mixed, R"({"profile": "two.json"})");
    std::filesystem::remove(folder.scratch.folder / "two.json");
    const Loaded again = read_scenario(folder.scratch.write("saved.json", loaded.resolved_json));
    CHECK(again.resolved_json == loaded.resolved_json);
    CHECK(hash8(again) == hash8(loaded));
    CHECK(again.scenario.cluster.devices.at("v100").shapes[0].factors ==
          loaded.scenario.cluster.devices.at("v100").shapes[0].factors);
}

TEST_CASE("what a scenario says itself stays") {
    const Folder folder;
    const Loaded loaded = folder.read(mixed, R"({"profile": "two.json", "devices": {"a100": {"c": 7}},
        "server": {"push_s": 5}, "network": {"star": {"bandwidth": 5e8}}})");
    const ClusterSpec& cluster = loaded.scenario.cluster;
    CHECK(loaded.notes ==
          std::vector<std::string>{apart,
                                   "cluster.profile: the scenario gives devices.a100, server.push_s and "
                                   "network.star.bandwidth itself, so that two.json does not"});
    CHECK(cluster.devices.at("a100").c == 7);
    CHECK(cluster.devices.at("v100").table.size() == 2);
    CHECK(cluster.server.push_s == 5);
    CHECK(cluster.server.update_s == 0.002);
    CHECK(cluster.network.star.bandwidth == 5e8);
    CHECK(cluster.network.star.server_bandwidth == 0);
    CHECK(cluster.network.star.latency == Approx(2e-5));
    const Loaded own = folder.read(R"({"count": 2, "device": "x"})",
                                   R"({"devices": {"x": {"profile": "one.json", "host_sharing": 0.5}}})");
    CHECK(own.scenario.cluster.devices.at("x").table[0].second == 0.1);
    CHECK(own.scenario.cluster.devices.at("x").host_sharing == 0.5);
}

TEST_CASE("a profile of one class serves workers that name none") {
    const Folder folder;
    const Loaded loaded = folder.read(R"({"count": 2})", R"({"profile": "one.json"})");
    CHECK(loaded.scenario.cluster.devices.at("default").table[0].second == 0.1);
}

TEST_CASE("a profile replaces the scenario's figures where that is asked for, part by part") {
    const Folder folder;
    const Profile profile = read_profile((folder.scratch.folder / "two.json").string());
    const std::string text = text_with(mixed, R"({"devices": {"v100": {"c": 1, "p": 0.5}, "a100": {"a": 1}},
        "server": {"push_s": 5}, "network": {"star": {"bandwidth": 5e8}}})");
    Node root = parse_json(text, {});
    put_profile(root, profile, {}, {true, false, false}, true);
    const Loaded compute = resolve_layers(root, "x");
    CHECK(compute.scenario.cluster.devices.at("v100").table.size() == 2);
    CHECK(compute.scenario.cluster.devices.at("a100").table.size() == 1);
    CHECK(compute.scenario.cluster.server.push_s == 5);
    root = parse_json(text, {});
    put_profile(root, profile, {}, {false, true, true}, true);
    const Loaded others = resolve_layers(root, "x");
    CHECK(others.scenario.cluster.devices.at("v100").c == 1);
    CHECK(others.scenario.cluster.server.push_s == 0.001);
    CHECK(others.scenario.cluster.network.star.bandwidth == 1e9);
    CHECK(others.scenario.cluster.network.star.server_bandwidth == 3e9);
}

TEST_CASE("a scenario can be read without the profiles that it names") {
    Node root =
        parse_json(text_with(mixed, R"({"profile": "none.json", "devices": {"v100": {"profile": "none.json"}}})"), {});
    drop_profiles(root);
    const Loaded loaded = resolve_layers(root, "x");
    CHECK(loaded.scenario.cluster.devices.at("v100").kind == DeviceSpec::Kind::flops);
    CHECK(loaded.scenario.cluster.devices.contains("a100"));
}

TEST_CASE("a written profile reads back") {
    const Profile first = parse_profile(two_classes, "p.json");
    const std::string text = to_json(to_node(first));
    const Profile second = parse_profile(text, "p.json");
    CHECK(to_json(to_node(second)) == text);
    CHECK(second.compute.at("v100").host_sharing == first.compute.at("v100").host_sharing);
    CHECK(second.network->server_bandwidth == first.network->server_bandwidth);
}

TEST_CASE("quantiles of a scenario: means are filled in, and what is wrong is refused") {
    const auto device = [](const std::string& keys) {
        return small("\"cluster\": {\"devices\": {\"default\": {" + keys + "}}}");
    };
    const DeviceSpec alone = read_text(device(R"("quantiles": {"32": [0.1, 0.2, 0.3], "8": ["10ms", "20ms", "60ms"]})"))
                                 .scenario.cluster.devices.at("default");
    CHECK(alone.levels == std::vector<double>{0, 0.5, 1});
    REQUIRE(alone.table.size() == 2);
    CHECK(alone.table[0] == std::pair(8.0, 0.0275));
    CHECK(alone.table[1].second == Approx(0.2));
    const DeviceSpec scaled =
        read_text(device(R"("seconds": {"32": 5}, "quantiles": {"32": [0.1, 0.2, 0.3]}, "levels": [0, 0.1, 1])"))
            .scenario.cluster.devices.at("default");
    CHECK(scaled.table[0].second == 5);
    CHECK(scaled.shapes[0].factors[1] == Approx(0.2 / 0.24));
    const std::string place = "scenario.json:5: cluster.devices.default.";
    CHECK(error_of(device(R"("quantiles": {"32": [0.1, 0.3, 0.2]})")) ==
          place + "quantiles.32[2]: expected quantiles in ascending order");
    CHECK(error_of(device(R"("quantiles": {"32": [0, 0]})")) == place + "quantiles.32: expected a mean above 0");
    CHECK(error_of(device(R"("quantiles": {"32": [1, 2], "8": [1, 2, 3]})")) ==
          place + "quantiles.8: expected as many quantiles as levels, 2, found 3");
    CHECK(error_of(device(R"("quantiles": {"32": [1, 2]}, "levels": [0, 0.9])")) ==
          place + "levels: expected fractions in ascending order, the first 0 and the last 1");
    CHECK(error_of(device(R"("levels": [0, 1])")) == place + "levels: goes with quantiles");
    CHECK(error_of(device(R"("quantiles": {"many": [1, 2]})")).find("expected a whole number") != std::string::npos);
    CHECK(error_of(device(R"("host_sharing": {})")) == place + "host_sharing: expected at least one number of workers");
    CHECK(error_of(small(R"("cluster": {"server": {"measured_bytes": [2, 1]}})")) ==
          "scenario.json:5: cluster.server.measured_bytes: expected the smaller size first");
}

TEST_CASE("profiles that do not fit a scenario are refused in one line") {
    const Folder folder;
    CHECK(folder.refusal(mixed, R"({"profile": "none.json"})") ==
          "s.json:3: cluster.profile: there is no file none.json");
    CHECK(
        folder.refusal(R"({"count": 2, "device": "h100"})", R"({"profile": "two.json"})") ==
        "s.json:3: cluster.profile: the profile has no times of device class \"h100\", only of \"a100\" and \"v100\"");
    CHECK(folder.refusal(R"({"count": 2, "device": "x"})", R"({"devices": {"x": {"profile": "two.json"}}})") ==
          "s.json:3: cluster.devices.x.profile: the profile has no times of device class \"x\", only of \"a100\" and "
          "\"v100\"");
    CHECK(folder.refusal(mixed, R"({"devices": {"v100": {"profile": "two.json", "c": 1}}})") ==
          "s.json:3: cluster.devices.v100.profile: cannot stand beside c");
    CHECK(folder.refusal(mixed, R"({"profile": 3})").starts_with("s.json:3: cluster.profile: expected a string"));
    CHECK(folder.refusal(mixed, R"({"profile": ""})").starts_with("s.json:3: cluster.profile: expected some text"));
    CHECK(folder.refusal(mixed, R"({"profile": "s.json"})") ==
          "s.json:1: cost: unknown key; this is a key of scenarios, and the file should be a profile");
}

TEST_CASE("broken profiles are refused with file, line and path") {
    const Folder folder;
    const auto with = [](const std::string& more) { return "{\"profile_version\": 1,\n" + more + "}"; };
    const auto times = [&](const std::string& entry, const std::string& levels = "") {
        return with(levels + "\"compute\": {\"a\": {\"batches\": {\"8\": " + entry + "}}}");
    };
    CHECK(folder.profile_refusal("[]") == "p.json:1: expected a JSON object, found an array");
    CHECK(folder.profile_refusal("{}").find("\"profile_version\" is missing") != std::string::npos);
    CHECK(folder.profile_refusal("{\"profile_version\": 2}").find("found the number 2") != std::string::npos);
    CHECK(folder.profile_refusal(with("\"comput\": {}")) == "p.json:2: comput: unknown key; did you mean \"compute\"?");
    CHECK(folder.profile_refusal(times("{\"mean\": 0}")).starts_with("p.json:2: compute.a.batches.8.mean: expected"));
    CHECK(folder.profile_refusal(times("{\"mean\": 1, \"meen\": 1}")) ==
          "p.json:2: compute.a.batches.8.meen: unknown key; did you mean \"mean\"?");
    CHECK(folder.profile_refusal(times("{\"mean\": 1, \"quantiles\": [1, 2]}")) ==
          "p.json:2: compute.a.batches.8.quantiles: the profile has no \"levels\"");
    CHECK(folder.profile_refusal(times("{\"mean\": 1, \"quantiles\": [1, 2]}", "\"levels\": [0, 0.5, 1],")) ==
          "p.json:2: compute.a.batches.8.quantiles: expected as many quantiles as levels, 3, found 2");
    CHECK(folder.profile_refusal(times("{\"mean\": 1, \"quantiles\": [2, 1]}", "\"levels\": [0, 1],")) ==
          "p.json:2: compute.a.batches.8.quantiles: expected quantiles in ascending order");
    CHECK(folder.profile_refusal(times("{\"mean\": 1}", "\"levels\": [0.1, 1],"))
              .starts_with("p.json:2: levels: expected fractions"));
    CHECK(folder.profile_refusal(with("\"compute\": {\"a\": {\"batches\": {\"eight\": {\"mean\": 1}}}}"))
              .find("expected a whole number") != std::string::npos);
    CHECK(folder.profile_refusal(with("\"network\": {\"bytes\": [2, 1], \"bandwidth\": 1}")) ==
          "p.json:2: network.bytes: expected the smaller size first");
    CHECK(folder.profile_refusal(with("\"network\": {\"bytes\": [1, 2], \"bandwidth\": 0}"))
              .starts_with("p.json:2: network.bandwidth: expected"));
}

TEST_CASE("quantiles of a sample keep its distribution") {
    learn::Stream stream(7, 0, learn::Purpose::sample, 0);
    std::vector<double> sample;
    for (int i = 0; i < 5000; ++i) sample.push_back(0.1 * stream.lognormal(0.5));
    double sum = 0;
    for (const double value : sample) sum += value;
    const ComputeTimes times = compute_times(sample);
    CHECK(times.n == 5000);
    CHECK(times.mean == Approx(sum / 5000));
    const auto& levels = profile_levels();
    for (std::size_t i = 0; i < levels.size(); ++i) {
        const auto below = std::upper_bound(sample.begin(), sample.end(), times.quantiles[i]) - sample.begin();
        CHECK(static_cast<double>(below) / 5000 == Approx(levels[i]).epsilon(0.001));
    }
    for (int round = 0; round < 500; ++round) {
        std::vector<double> other;
        for (int i = 0; i < 20 + round; ++i) other.push_back(0.1 * stream.uniform());
        const auto quantiles = compute_times(other).quantiles;
        REQUIRE(std::is_sorted(quantiles.begin(), quantiles.end()));
    }
    CHECK(times.quantiles.front() == sample.front());
    CHECK(times.quantiles.back() == sample.back());
}
