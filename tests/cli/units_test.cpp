// Units: bits are not bytes, and the wrong case is no unit.
#include "cli/units.hpp"
#include "cli/expression.hpp"
#include "cli/scratch.hpp"
#include "cli/suggest.hpp"

#include <doctest/doctest.h>

using namespace rubato;
using namespace rubato::cli;

TEST_CASE("wrong units are refused with a suggestion") {
    const auto of = [](const char* value, const char* key = "cluster.network.star.bandwidth") {
        return error_of(small(), {std::string(key) + "=\"" + value + "\""});
    };
    CHECK(of("1gbps").find("unknown unit \"gbps\", did you mean GBps (bytes) or Gbps (bits)?") != std::string::npos);
    CHECK(of("1Gb/s").find("did you mean Gbps") != std::string::npos);
    CHECK(of("1000").find("no unit; expected a bandwidth such as") != std::string::npos);
    CHECK(of("fast").find("\"fast\": no number") != std::string::npos);
    CHECK(of("-1Gbps").find("expected a number above 0") != std::string::npos);
    CHECK(of("0Gbps").find("expected a number above 0") != std::string::npos);
    CHECK(of("nanGbps").find("not a finite number") != std::string::npos);
    CHECK(of("1e400Gbps").find("not a finite number") != std::string::npos);
    CHECK(of("1Us", "cluster.network.star.latency").find("did you mean us?") != std::string::npos);
    CHECK(of("1GFlops", "cluster.network.star.host_speed").find("did you mean Gf?") != std::string::npos);
    CHECK(of("1KB", "cost").find("expected an object") != std::string::npos);
    CHECK(error_of(small(), {"cost={\"push_bytes\":\"1KB\"}"}).find("did you mean kB") != std::string::npos);
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
    CHECK_THROWS_WITH(make_expression("1/(1+staleness)^ab", {{"a", 2}, {"ab", 1}}),
                      doctest::Contains("the constant \"a\" does not occur in the expression"));
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
