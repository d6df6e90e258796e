// Units: bits are not bytes, and the wrong case is no unit.
#include "cli/units.hpp"
#include "cli/expression.hpp"
#include "cli/scratch.hpp"
#include "cli/suggest.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::cli;

TEST_CASE("units are those of SimGrid") {
    CHECK(parse_quantity("1Gbps", Quantity::bandwidth) * 8 == parse_quantity("1GBps", Quantity::bandwidth));
    CHECK(parse_quantity("25Gbps", Quantity::bandwidth) == 3.125e9);
    CHECK(parse_quantity("1KiBps", Quantity::bandwidth) == 1024);
    CHECK(parse_quantity("1Mibps", Quantity::bandwidth) == 131072);
    CHECK(parse_quantity("10us", Quantity::time) == doctest::Approx(1e-5));
    CHECK(parse_quantity("2m", Quantity::time) == 120);
    CHECK(parse_quantity("1d", Quantity::time) == 86400);
    CHECK(parse_quantity("100Gf", Quantity::speed) == 1e11);
    CHECK(parse_quantity("2Mflops", Quantity::speed) == 2e6);
    CHECK(parse_quantity("350kB", Quantity::bytes) == 350e3);
    CHECK(parse_quantity("1MiB", Quantity::bytes) == 1048576);
    CHECK(parse_quantity("1.5 kB", Quantity::bytes) == 1500);
}

TEST_CASE("wrong units are refused with a suggestion") {
    const auto of = [](const char* value, const char* key = "cluster.network.star.bandwidth") {
        return error_of(small(), {std::string(key) + "=\"" + value + "\""});
    };
    CHECK(of("1gbps").find("unknown unit \"gbps\" in \"1gbps\"; did you mean \"Gbps\" (bits) or \"GBps\" (bytes)?") !=
          std::string::npos);
    CHECK(of("1Gb/s").find("did you mean") != std::string::npos);
    CHECK(of("1000").find("no unit in \"1000\"") != std::string::npos);
    CHECK(of("fast").find("expected a number with a unit such as \"10Gbps\" (bits)") != std::string::npos);
    CHECK(of("-1Gbps").find("expected a number above 0") != std::string::npos);
    CHECK(of("0Gbps").find("expected a number above 0") != std::string::npos);
    CHECK(of("nanGbps").find("expected a number") != std::string::npos);
    CHECK(of("1e400Gbps").find("expected a number") != std::string::npos);
    CHECK(of("1Us", "cluster.network.star.latency").find("did you mean \"us\"?") != std::string::npos);
    CHECK(of("1GFlops", "cluster.network.star.host_speed").find("did you mean \"Gflops\"?") != std::string::npos);
    CHECK(of("1KB", "cost").find("expected an object") != std::string::npos);
    CHECK(error_of(small(), {"cost={\"push_bytes\":\"1KB\"}"}).find("did you mean \"kB\"?") != std::string::npos);
    CHECK(of("5ms", "cluster.server.push_s").empty());
}

TEST_CASE("near words") {
    CHECK(nearest("learing_rate", {"learning_rate", "weight_decay"}) == "learning_rate");
    CHECK(nearest("zzz", {"learning_rate"}).empty());
    CHECK(nearest("x", {"n"}).empty());
    CHECK(edit_distance("ab", "ba") == 1);
    CHECK(one_of({"a", "b", "c"}) == "a, b or c");
    CHECK(one_of({}).empty());
}

TEST_CASE("expressions refuse what gives no factor") {
    CHECK_THROWS_WITH(make_expression("1/(", {}), doctest::Contains("expression \"1/(\", character "));
    CHECK_THROWS_WITH(make_expression("", {}), doctest::Contains("character 1"));
    CHECK_THROWS_WITH(make_expression("staleness = 3", {}), doctest::Contains("character 11: = does not compare"));
    CHECK_THROWS_WITH(make_expression("1, 2", {}), doctest::Contains("expected one value"));
    CHECK_THROWS(make_expression("1", {{"staleness", 2}}));
    CHECK(make_expression("staleness <= 2 ? 1 : 0.5", {})->operator()({}) == 1);
    const auto inverse = make_expression("1/staleness", {});
    CHECK_THROWS_AS((*inverse)({}), ExpressionError);
    CHECK_THROWS_WITH((*inverse)({}),
                      doctest::Contains("gives inf, expected a finite factor of at least 0, at staleness = 0"));
    RuleInfo info;
    info.staleness = 2;
    CHECK((*inverse)(info) == 0.5);
    CHECK_THROWS_AS((*make_expression("0 - staleness", {}))(info), ExpressionError);
}
