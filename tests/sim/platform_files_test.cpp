// SimGrid platform files that are wrong, old or ambiguous: one line with the place and what to do.
#include "sim/network_fixture.hpp"

#include <doctest/doctest.h>

#include <filesystem>

using namespace rubato;
using namespace rubato::tests;

namespace {

std::unique_ptr<sim::Network> open(const std::string& path) {
    const Scenario scenario = scenario_on(path, "CM02");
    return sim::open_network({&scenario, 0});
}

/// The file's name without folders stands for its path in the expectations below.
std::string error_of(const std::string& file) {
    const std::string path = data_file(file);
    std::string message = platform_error([&] { open(path); });
    if (const auto at = message.find(path); at != std::string::npos) message.replace(at, path.size(), file);
    return message;
}

}  // namespace

TEST_CASE("platform files that are wrong are refused in one line") {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"v3.xml",
         "v3.xml:3: version 3.0 of the platform format is too old; expected 4.1; simgrid_update_xml converts the file"},
        {"v5.xml",
         "v5.xml:3: version 5.0 of the platform format is from the future; expected 4.1, to which simgrid_update_xml "
         "brings older files"},
        {"oldpower.xml",
         "oldpower.xml:2: Bad attribute `power' in `host' element start tag. Attributes of older formats are converted "
         "by simgrid_update_xml"},
        {"slash.xml", "slash.xml:3: unknown unit \"Gb/s\"; did you mean Gbps (bits)?"},
        {"lower.xml", "lower.xml:3: unknown unit \"gbps\"; did you mean GBps (bytes) or Gbps (bits)?"},
        {"GFlops.xml", "GFlops.xml:3: unknown unit \"GFlops\"; did you mean Gf?"},
        {"Us.xml", "Us.xml:3: unknown unit \"Us\"; did you mean us?"},
        {"negspeed.xml", "negspeed.xml:3: speed of host \"A\" is -1e+09 flop/s; expected above zero"},
        {"zerobw.xml", "zerobw.xml:3: bandwidth of link \"l\" is 0 bytes/s; expected above zero"},
        {"unknownhost.xml",
         "unknownhost.xml:3: route to or from \"C\", which is no host of the zone; there are 'A','B'"},
        {"unknownlink.xml", "unknownlink.xml:3: link \"zz\" is used by a route but not defined"},
        {"duphost.xml", "duphost.xml:3: a second host named \"A\"; names must be unique"},
        {"mix116.xml",
         "mix116.xml:2: Starting tag <cluster> is not allowed here. A zone holds either hosts, links and routes, or "
         "other zones, and a cluster is a zone"},
        {"trunc.xml", "trunc.xml:3: the file ends in the middle: EOF in attribute list of `link' element."},
    };
    for (const auto& [file, expected] : cases) CHECK(error_of(file) == expected);
}

TEST_CASE("files that are no platform say what was expected") {
    const std::string head =
        "expected a SimGrid platform: <?xml version=\"1.0\"?>, then <!DOCTYPE platform SYSTEM "
        "\"https://simgrid.org/simgrid.dtd\">, then <platform version=\"4.1\">";
    CHECK(error_of("nodoctype.xml") == "nodoctype.xml:1: the DOCTYPE line is missing; " + head);
    CHECK(error_of("empty.xml") == "empty.xml:1: the file is empty; " + head);
    CHECK(error_of("notxml.xml") == "notxml.xml:1: not an XML file; " + head);
    CHECK(error_of("bom.xml") ==
          "bom.xml:1: begins with a byte order mark, which SimGrid cannot read; save it as UTF-8 without one");
    CHECK(error_of("missing.xml") == "missing.xml: cannot open the platform file: No such file or directory");
    CHECK(error_of("") != "");
}

TEST_CASE("files of format 4, with blanks in names or carriage returns are read, and prefixes of any size") {
    CHECK(open(data_file("v4.xml"))->hosts().size() == 2);
    CHECK(open(data_file("crlf.xml"))->hosts().size() == 2);
    const auto spaces = open(data_file("space81.xml"));
    CHECK(spaces->warnings().empty());
    REQUIRE(spaces->hosts().size() == 2);
    CHECK(spaces->hosts()[0].name == "host 0");
    CHECK(spaces->hosts()[0].speed == 1562e3);
}

TEST_CASE("a megaflop is a unit, though a small one") {
    CHECK(open(data_file("Mf.xml"))->hosts()[0].speed == 1e6);
}

TEST_CASE("values without unit are read with a warning") {
    const auto warning = [](const std::string& file) {
        const auto network = open(data_file(file));
        REQUIRE(network->warnings().size() == 1);
        const std::string& text = network->warnings()[0];
        return text.substr(text.find("nounit"));
    };
    CHECK(warning("nounit_bw.xml") ==
          "nounit_bw.xml:3: value 125000000 for bandwidth of link l has no unit; Bps (bytes) is assumed");
    CHECK(warning("nounit_lat.xml") ==
          "nounit_lat.xml:3: value 0.00005 for latency of link l has no unit; s (seconds) is assumed");
    CHECK(warning("nounit_speed.xml") ==
          "nounit_speed.xml:3: value 1000000000 for speed of host A has no unit; f (flop/s) is assumed");
    CHECK(open(data_file("ok.xml"))->warnings().empty());
}

TEST_CASE("hosts come in the order of the file, with speed and cores") {
    const auto network = open(data_file("cluster.xml"));
    REQUIRE(network->hosts().size() == 12);
    CHECK(network->hosts()[2].name == "node-2");
    CHECK(network->hosts()[10].name == "node-10");
    CHECK(network->hosts()[0].speed == 2e9);
    CHECK(network->hosts()[0].cores == 4);
}

TEST_CASE("the platforms that come with rubato are read, without warnings") {
    int read = 0;
    for (const auto& entry : std::filesystem::directory_iterator(data_file("../../../platforms"))) {
        if (entry.path().extension() == ".md") continue;
        CAPTURE(entry.path().string());
        const auto network = open(entry.path().string());
        CHECK(network->hosts().size() >= 5);
        CHECK(network->warnings().empty());
        const auto last = static_cast<sim::HostId>(network->hosts().size()) - 1;
        CHECK(network->route(last, 0).first >= 125e6);
        ++read;
    }
    CHECK(read >= 7);
}

TEST_CASE("platforms of the SimGrid distribution are read") {
    const auto any = shared_file("platforms");
    if (!any) {
        MESSAGE("skipped, as shared/cases/platforms is not here");
        return;
    }
    int read = 0;
    for (const auto& entry : std::filesystem::directory_iterator(*any)) {
        // One is large, and one has latencies that change, which takes a process of its own: tests/cases runs them.
        const std::string name = entry.path().filename().string();
        if (entry.path().extension() != ".xml" || name == "cluster_crossbar.xml") continue;
        if (name == "small_platform_profile.xml") continue;
        CAPTURE(entry.path().string());
        CHECK(in_child([&] { return open(entry.path().string())->hosts().size() >= 2 ? "read" : "few hosts"; }) ==
              "read");
        ++read;
    }
    CHECK(read >= 6);
    // The order of the file, not of the alphabet.
    CHECK(open(*any + "/small_platform.xml")->hosts()[0].name == "Tremblay");
}
