#include "sim/platform/units.hpp"

#include <doctest/doctest.h>

using namespace rubato::sim;

namespace {

std::string error_of(std::string_view text, Quantity quantity) {
    try {
        parse_physical(text, quantity);
    } catch (const UnitError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("bits, bytes and prefixes are told apart") {
    CHECK(parse_quantity("1Gbps", Quantity::bandwidth) == 125e6);
    CHECK(parse_quantity("1GBps", Quantity::bandwidth) == 1e9);
    CHECK(parse_quantity("10 Gbps", Quantity::bandwidth) == 1.25e9);
    CHECK(parse_quantity("8kbps", Quantity::bandwidth) == 1000);
    CHECK(parse_quantity("1KiBps", Quantity::bandwidth) == 1024);
    CHECK(parse_quantity("1.5Mibps", Quantity::bandwidth) == 1.5 * 1048576 / 8);
    CHECK(parse_quantity("2MB", Quantity::size) == 2e6);
    CHECK(parse_quantity("2MiB", Quantity::size) == 2097152);
}

TEST_CASE("durations and speeds") {
    CHECK(parse_quantity("50us", Quantity::duration) == 50e-6);
    CHECK(parse_quantity("1.5ms", Quantity::duration) == 1.5e-3);
    CHECK(parse_quantity("2m", Quantity::duration) == 120);
    CHECK(parse_quantity("0", Quantity::duration) == 0);
    CHECK(parse_quantity("98.095Mf", Quantity::speed) == 98.095e6);
    CHECK(parse_quantity("1e3Gf", Quantity::speed) == 1e12);
}

TEST_CASE("near misses are named") {
    CHECK(error_of("1gbps", Quantity::bandwidth) ==
          "\"1gbps\": unknown unit \"gbps\", did you mean GBps (bytes) or Gbps (bits)?; expected a bandwidth such as "
          "1.25GBps (bytes) or 10Gbps (bits)");
    CHECK(suggest_unit("Gb/s", Quantity::bandwidth) == "did you mean Gbps (bits)?");
    CHECK(suggest_unit("GB/s", Quantity::bandwidth) == "did you mean GBps (bytes)?");
    CHECK(suggest_unit("Gbit/s", Quantity::bandwidth) == "did you mean Gbps (bits)?");
    CHECK(suggest_unit("MBytes/s", Quantity::bandwidth) == "did you mean MBps (bytes)?");
    CHECK(suggest_unit("Kbps", Quantity::bandwidth) == "did you mean kBps (bytes) or kbps (bits)?");
    CHECK(suggest_unit("GFlops", Quantity::speed) == "did you mean Gf?");
    CHECK(suggest_unit("US", Quantity::duration) == "did you mean us?");
    CHECK(suggest_unit("sec", Quantity::duration) == "did you mean s?");
    CHECK(suggest_unit("furlongs", Quantity::duration) == "");
    CHECK(error_of("fast", Quantity::speed) == "\"fast\": no number; expected a speed such as 1Gf");
    CHECK(error_of("7", Quantity::duration) == "\"7\": no unit; expected a duration such as 50us");
}

TEST_CASE("values that no machine has are refused") {
    CHECK(error_of("-1Gf", Quantity::speed) == "\"-1Gf\": negative; expected a speed such as 1Gf");
    CHECK(error_of("0Bps", Quantity::bandwidth).starts_with("\"0Bps\": must be above zero"));
    CHECK(error_of("inf s", Quantity::duration).starts_with("\"inf s\": not a finite number"));
    CHECK(error_of("1e999s", Quantity::duration).starts_with("\"1e999s\": not a finite number"));
    CHECK(error_of("0s", Quantity::duration) == "");
}
